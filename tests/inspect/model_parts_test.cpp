// Tests the parts of a model on which TensorRT can run separately, and the branches of If as separate models.
#include "inspect/model_parts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "inspect/branch_model.hpp"
#include "tests/support/text_model.hpp"

namespace graft::inspect {
namespace {

using test::producer;
using testing::ElementsAre;

std::vector<std::string> names_of(const std::vector<const onnx::Node*>& nodes) {
  std::vector<std::string> names;
  for (const onnx::Node* node : nodes) names.push_back(node->output()->name);
  return names;
}

TEST(ModelParts, ComeWithWhatComputesTheirSizesButNotWithOtherNumbers) {
  onnx::Model model =
      test::inferred_text_model({{"x", onnx::ElementType::f32, {2, 6}}, {"z", onnx::ElementType::f32, {3, 4}}},
                                "a = Relu(x)\ns = Shape(z)\ny = Reshape(a, s)", {"y"});
  const std::vector<const onnx::Node*> part = {&producer(model, "y")};
  EXPECT_THAT(names_of(with_sizes(part, model.graph(), {})), ElementsAre("s", "y"));
  EXPECT_THAT(names_of(with_sizes(part, model.graph(), {&producer(model, "s")})), ElementsAre("y"));
}

TEST(ModelParts, BeginWhereTypeAndRankAreKnown) {
  onnx::Model model = test::inferred_text_model({{"x", onnx::ElementType::f32, {2, 6}}},
                                                "a = own::Thing(x)\nb = Neg(a)\ny = Relu(x)", {"b", "y"});
  EXPECT_TRUE(can_be_input(*model.graph().find("y")));
  EXPECT_FALSE(can_be_input(*model.graph().find("a"))) << "only its own library knows what it makes";
  EXPECT_THAT(names_of(with_sizes({&producer(model, "b")}, model.graph(), {})), ElementsAre("a", "b"));
}

class Branches : public testing::Test {
 protected:
  Branches() {
    onnx::Graph& graph = model_.graph();
    const auto branch = [&](const std::string& nodes, const std::string& output) {
      auto inner = std::make_unique<onnx::Graph>(&graph);
      parse_nodes(*inner, nodes, {output}, nullptr);
      return inner;
    };
    onnx::Node* choice = graph.add_node("If", {graph.find("c")}, {"y"});
    choice->name = "choice";
    choice->attributes["then_branch"] = onnx::AttributeData(branch("t = Neg(a)", "t"));
    choice->attributes["else_branch"] = onnx::AttributeData(branch("e = Det(a)\nf = Relu(e)", "f"));
    graph.add_output(*choice->output());
  }

  onnx::Model model_ = test::inferred_text_model(
      {{"x", onnx::ElementType::f32, {2, 2}}, {"c", onnx::ElementType::boolean, {}}}, "a = Relu(x)", {});
};

TEST_F(Branches, AnInnerNodeIsFound) {
  const onnx::Node& choice = producer(model_, "y");
  const onnx::Node* found = find_inside(model_, choice, [](const onnx::Node& node) { return node.is("Det"); });
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->output()->name, "e");
  EXPECT_EQ(find_inside(model_, choice, [](const onnx::Node& node) { return node.is("Abs"); }), nullptr);
}

TEST_F(Branches, ABranchAloneKeepsWhatItReadsAndLeavesTheCondition) {
  const auto others = branch_as_model(model_.clone(), "choice", 0);
  const auto then = branch_as_model(model_.clone(), "choice", 1);
  ASSERT_TRUE(then && others);
  // The attributes of a node are in the order of their names: else_branch, then_branch.
  EXPECT_THAT(test::op_types(others->graph()), ElementsAre("Relu", "Det", "Relu"));
  EXPECT_THAT(test::op_types(then->graph()), ElementsAre("Relu", "Neg"));
  EXPECT_EQ(then->graph().inputs().size(), 1U);
  ASSERT_EQ(then->graph().outputs().size(), 1U);
  EXPECT_EQ(then->graph().outputs()[0]->name, "t");
}

}  // namespace
}  // namespace graft::inspect

// Tests the conversion of nodes to operators and back: names, drop-ins, attributes.
#include "onnx/operator_node.hpp"

#include <gtest/gtest.h>

#include "graft/operator/registry.hpp"
#include "tests/support/text_model.hpp"

namespace graft::test {
namespace {

onnx::Node& node_of(onnx::Model& model, const std::string& text) {
  model = text_model({{"x"}}, text, {"y"});
  return producer(model, "y");
}

std::string refusal(const std::string& text) {
  onnx::Model model;
  onnx::Node& node = node_of(model, text);
  return error_of([&] { (void)make_operator(node); });
}

TEST(OperatorNode, TakesTheAttributesOfTheNode) {
  onnx::Model model;
  const auto op =
      make_operator(node_of(model, "y = graft::L2Normalize<axes=[1, -1], epsilon=0.5, epsilon_mode=\"add\">(x)"));
  ASSERT_NE(op, nullptr);
  EXPECT_EQ(op->get("axes"), AttributeValue(std::vector<std::int64_t>{1, -1}));
  EXPECT_EQ(op->get("epsilon"), AttributeValue(0.5F));
  EXPECT_EQ(op->get("epsilon_mode"), AttributeValue(std::string("add")));
}

TEST(OperatorNode, KnowsDropInNames) {
  onnx::Model model;
  const auto op =
      make_operator(node_of(model, "y = TRT::LReLU_TRT<negSlope=0.5, plugin_version=\"1\", plugin_namespace=\"\">(x)"));
  ASSERT_NE(op, nullptr);
  EXPECT_EQ(op->type().name, "LeakyReLU");
  EXPECT_EQ(op->get("alpha"), AttributeValue(0.5F));
  EXPECT_EQ(make_operator(node_of(model, "y = LReLU_TRT<negSlope=0.5>(x)"))->type().name, "LeakyReLU");
  EXPECT_EQ(make_operator(node_of(model, "y = LReLU_TRT<plugin_version=\"7\">(x)")), nullptr);
}

TEST(OperatorNode, DropInNamesOfOthersAreNotItsOwn) {
  onnx::Model model;
  for (const char* text : {"y = mine::LReLU_TRT<negSlope=0.5>(x)", "y = LReLU_TRT<plugin_namespace=\"mine\">(x)",
                           "y = LReLU_TRT<plugin_namespace=1>(x)", "y = LReLU_TRT<plugin_version=1>(x)",
                           "y = LReLU_TRT<plugin_version=1.0>(x)"}) {
    EXPECT_EQ(make_operator(node_of(model, text)), nullptr) << text;
  }
}

TEST(OperatorNode, TwoNamesOfOneAttributeHaveToAgree) {
  onnx::Model model;
  EXPECT_EQ(make_operator(node_of(model, "y = LeakyReluPlugin<alpha=0.5, negSlope=0.5>(x)"))->get("alpha"),
            AttributeValue(0.5F));
  const std::string error = refusal("y = LeakyReluPlugin<alpha=0.5, negSlope=0.25>(x)");
  EXPECT_NE(error.find("node 'y' (LeakyReluPlugin)"), std::string::npos) << error;
  EXPECT_NE(error.find("`alpha`"), std::string::npos) << error;
}

TEST(OperatorNode, LeavesOtherNodesAlone) {
  onnx::Model model;
  EXPECT_EQ(make_operator(node_of(model, "y = LeakyRelu(x)")), nullptr);
  EXPECT_EQ(make_operator(node_of(model, "y = LeakyReLU(x)")), nullptr);  // not in Graft's domain
  EXPECT_EQ(make_operator(node_of(model, "y = graft::Nonsense(x)")), nullptr);
}

TEST(OperatorNode, RefusalsNameNodeAndAttribute) {
  EXPECT_EQ(refusal("y = graft::LeakyReLU<slope=0.5>(x)"),
            "node 'y' (graft::LeakyReLU): it has no attribute `slope`; its attributes are alpha, x_scale, y_scale");
  EXPECT_EQ(refusal("y = graft::LeakyReLU<alpha=[1.5]>(x)"),
            "node 'y' (graft::LeakyReLU): attribute `alpha` has type floats; it must have type float");
  EXPECT_NE(refusal("y = graft::LeakyReLU<x_scale=0.0>(x)").find("`x_scale`"), std::string::npos);
  EXPECT_NE(refusal("y = graft::LeakyReLU<alpha=float([1, 2])>(x)").find("has type tensor"), std::string::npos);
  EXPECT_NE(refusal("y = LReLU_TRT<alpha=0.5>(x)").find("its attributes are negSlope"), std::string::npos);
  EXPECT_NE(refusal("y = graft::L2NormHelper(x)").find("`op_type` is required and missing"), std::string::npos);
  EXPECT_NE(refusal("y = graft::L2Normalize<epsilon_mode=\"min\">(x)").find("max, norm, add"), std::string::npos);
}

class EveryOperatorNode : public ::testing::TestWithParam<const OperatorType*> {};

TEST_P(EveryOperatorNode, AddedNodesCarryEveryAttribute) {
  const OperatorType& type = *GetParam();
  onnx::Model model;
  model.graph().opset_imports[""] = 17;
  std::vector<onnx::Value*> inputs(type.input_count(), model.graph().add_input("x"));
  const auto op = type.create();
  onnx::Node* node = add_operator_node(model.graph(), *op, inputs, std::vector<std::string>(type.output_count(), "y"));
  EXPECT_EQ(model.graph().opset("graft"), 1);
  EXPECT_EQ(node->attributes.size(), type.attributes.size());
  const auto again = make_operator(*node);
  for (const AttributeInfo& info : type.attributes) EXPECT_EQ(again->get(info.name), op->get(info.name)) << info.name;
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryOperatorNode, ::testing::ValuesIn(operators().begin(), operators().end()),
                         [](const auto& info) { return std::string(info.param->name); });

TEST(StandardOperators, NamesAndDefaults) {
  EXPECT_TRUE(onnx::is_standard_operator("", "Split"));
  EXPECT_TRUE(onnx::is_standard_operator("ai.onnx.ml", "Scaler"));
  EXPECT_FALSE(onnx::is_standard_operator("", "LReLU_TRT"));
  EXPECT_FALSE(onnx::is_standard_operator("graft", "Relu"));
  EXPECT_EQ(onnx::default_attribute("Softmax", "axis", 11), AttributeValue(std::int64_t{1}));
  EXPECT_EQ(onnx::default_attribute("Softmax", "axis", 13), AttributeValue(std::int64_t{-1}));
  EXPECT_EQ(onnx::default_attribute("LeakyRelu", "alpha", 17), AttributeValue(0.01F));
  EXPECT_EQ(onnx::default_attribute("Conv", "pads", 17), std::nullopt);
}

}  // namespace
}  // namespace graft::test

// Tests which tensors of a built network are reported as different from those that ONNX defines.
#include "inspect/different_tensors.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "onnx/shape_inference.hpp"
#include "tests/support/text_model.hpp"

namespace graft::inspect {
namespace {

using nlohmann::json;

/// Returns what the engine driver reports for a network of static sizes.
json built_as(const json& shapes, const json& types = json::object()) {
  json sizes = {{"inputs", json::object()}, {"shapes", shapes}};
  return {{"types", types}, {"sizes", json::array({std::move(sizes)})}};
}

onnx::Model pool_model(const Shape& input) {
  return test::text_model({{"x", onnx::ElementType::f32, input}},
                          "r = Relu(x)\np = MaxPool<kernel_shape = [1, 1], strides = [2, 2]>(r)\ny = Neg(p)", {"y"});
}

std::vector<std::string> names_of(const std::vector<DifferentTensor>& tensors) {
  std::vector<std::string> names;
  for (const DifferentTensor& tensor : tensors) names.push_back(tensor.name);
  return names;
}

using Names = std::vector<std::string>;

TEST(DifferentTensors, equal_sizes_are_no_finding) {
  const json built =
      built_as({{"r", {1, 3, 4, 4}}, {"p", {1, 3, 2, 2}}, {"y", {1, 3, 2, 2}}, {"other", {7}}}, {{"y", "f32"}});
  EXPECT_TRUE(find_different_tensors(pool_model({1, 3, 4, 4}), built).empty());
}

TEST(DifferentTensors, only_the_first_of_a_path_is_reported) {
  const auto found =
      find_different_tensors(pool_model({1, 3, 4, 4}), built_as({{"p", {1, 3, 3, 3}}, {"y", {1, 3, 3, 3}}}));
  ASSERT_EQ(names_of(found), Names{"p"});
  EXPECT_EQ(found[0].reason, "its output 'p' is 1x3x3x3 where ONNX defines 1x3x2x2");
}

// The branch of the If computes a tensor 't' of 2x3 for itself, and TensorRT's network has both.
TEST(DifferentTensors, a_name_that_a_branch_uses_as_well_is_no_finding) {
  onnx::Model model = test::text_model(
      {{"x", onnx::ElementType::f32, Shape{2, 3}}, {"c", onnx::ElementType::boolean, Shape{}}}, "", {});
  onnx::Graph& graph = model.graph();
  onnx::Node* choose = graph.add_node("If", {graph.find("c")}, {"chosen"});
  for (const std::string branch : {"then_branch", "else_branch"}) {
    auto body = std::make_unique<onnx::Graph>(&graph);
    onnx::parse_nodes(*body, "t = Relu(x)\n" + branch + "_y = Neg(t)", {branch + "_y"}, nullptr);
    choose->attributes[branch] = onnx::NodeAttribute(onnx::AttributeData(std::move(body)));
  }
  onnx::parse_nodes(graph, "t = Transpose<perm = [1, 0]>(chosen)\ny = Sigmoid(t)", {"y"}, nullptr);
  EXPECT_TRUE(find_different_tensors(model, built_as({{"t", {2, 3}}, {"y", {3, 2}}})).empty());
  EXPECT_EQ(names_of(find_different_tensors(model, built_as({{"t", {2, 3}}, {"y", {2, 3}}}))), Names{"y"});
}

TEST(DifferentTensors, sizes_that_one_side_does_not_know_are_no_finding) {
  EXPECT_TRUE(find_different_tensors(pool_model({1, 3, 4, 4}), built_as({{"y", {-1, 3, -1, 2}}})).empty());
  const onnx::Model dynamic = pool_model({Dim::symbol("n"), 3, 4, Dim::symbol("w")});
  EXPECT_TRUE(find_different_tensors(dynamic, built_as({{"y", {5, 3, 2, 9}}})).empty());
  EXPECT_EQ(names_of(find_different_tensors(dynamic, built_as({{"y", {5, 3, 3, 9}}}))), Names{"y"});
}

TEST(DifferentTensors, another_rank_is_a_finding) {
  const auto found = find_different_tensors(pool_model({1, 3, 4, 4}), built_as({{"y", json::array()}}));
  ASSERT_EQ(names_of(found), Names{"y"});
  EXPECT_EQ(found[0].reason, "its output 'y' is a scalar where ONNX defines 1x3x2x2");
}

TEST(DifferentTensors, dynamic_sizes_are_compared_for_each_size_of_the_inputs) {
  const onnx::Model model = pool_model({1, 3, Dim::symbol("h"), Dim::symbol("w")});
  const json right = {{"inputs", {{"x", {1, 3, 5, 5}}}}, {"shapes", {{"p", {1, 3, 3, 3}}}}};
  const json wrong = {{"inputs", {{"x", {1, 3, 4, 4}}}}, {"shapes", {{"p", {1, 3, 3, 3}}}}};
  const auto found = find_different_tensors(model, {{"sizes", json::array({right, wrong})}});
  ASSERT_EQ(names_of(found), Names{"p"});
  EXPECT_EQ(found[0].reason, "its output 'p' is 1x3x3x3 where ONNX defines 1x3x2x2 for x=1x3x4x4");
}

TEST(DifferentTensors, a_declared_shape_does_not_count) {
  onnx::Model model = pool_model({1, 3, 4, 4});
  model.graph().find("p")->shape = Shape{1, 3, 3, 3};
  EXPECT_TRUE(find_different_tensors(model, built_as({{"p", {1, 3, 2, 2}}})).empty());
  EXPECT_EQ(names_of(find_different_tensors(model, built_as({{"p", {1, 3, 3, 3}}}))), Names{"p"});
}

TEST(DifferentTensors, another_type_of_an_output_is_a_finding) {
  const auto found = find_different_tensors(pool_model({1, 3, 4, 4}), built_as(json::object(), {{"y", "i8"}}));
  ASSERT_EQ(names_of(found), Names{"y"});
  EXPECT_EQ(found[0].reason, "its output 'y' is of type i8 where ONNX defines f32");
}

TEST(DifferentTensors, an_f64_output_may_be_f32) {
  const onnx::Model model = test::text_model({{"x", onnx::ElementType::f64, Shape{2}}}, "y = Neg(x)", {"y"});
  EXPECT_TRUE(find_different_tensors(model, built_as({{"y", {2}}}, {{"y", "f32"}})).empty());
  EXPECT_TRUE(find_different_tensors(model, built_as({{"y", {2}}}, {{"y", "a new type"}})).empty());
}

TEST(DifferentTensors, nothing_is_reported_without_a_network) {
  EXPECT_TRUE(find_different_tensors(pool_model({1, 3, 4, 4}), json::object()).empty());
}

TEST(DifferentTensors, a_verdict_by_rule_stays) {
  NodeSupport verdict;
  verdict.support = Support::lowered;
  verdict.cause = computed_wrongly;
  verdict.reason = "layout = 1";
  note_different_tensor("its output differs", true, verdict);
  EXPECT_EQ(verdict.reason, "layout = 1");
  EXPECT_EQ(verdict.support, Support::lowered);
}

TEST(DifferentTensors, a_native_node_becomes_one_that_does_not_run) {
  NodeSupport verdict;
  note_different_tensor("its output differs", false, verdict);
  EXPECT_EQ(verdict.support, Support::unsupported);
  EXPECT_EQ(verdict.cause, computed_wrongly);
  EXPECT_EQ(verdict.reason, "its output differs");
  EXPECT_FALSE(verdict.advice.empty());
}

}  // namespace
}  // namespace graft::inspect

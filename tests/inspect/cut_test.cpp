// Tests where networks are cut in two, and that the halves compute the same as the whole.
#include "inspect/cut.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "inspect/arithmetic.hpp"
#include "inspect/detection_tail.hpp"
#include "onnx/join.hpp"
#include "tests/support/text_model.hpp"

namespace graft::inspect {
namespace {

using test::inferred_text_model;
using test::TextInput;

std::function<bool(const onnx::Node&)> is(const std::string& op_type) {
  return [op_type](const onnx::Node& node) { return node.op_type == op_type; };
}

std::vector<std::string> names_of(const std::vector<const onnx::Value*>& values) {
  std::vector<std::string> names;
  for (const onnx::Value* value : values) names.push_back(value->name);
  return names;
}

std::vector<std::string> names_of(const std::vector<onnx::Value*>& values) {
  return names_of(std::vector<const onnx::Value*>(values.begin(), values.end()));
}

using Names = std::vector<std::string>;

const TextInput image{"x", onnx::ElementType::f32, {1, 3, 8, 8}};

TEST(Cut, ends_before_what_does_not_run_and_leaves_the_rest_on_the_host) {
  const onnx::Model model = inferred_text_model({image, test::weight("w", {4, 3, 3, 3})},
                                                "a = Conv(x, w)\n"
                                                "b = Relu(a)\n"
                                                "c = Det(b)\n"
                                                "y = Neg(c)\n",
                                                {"y"});
  const auto cut = find_cut(model, is("Det"));
  ASSERT_TRUE(cut);
  EXPECT_TRUE(cut->tensorrt_is_first);
  EXPECT_EQ(names_of(cut->between), Names{"b"});
  const Halves halves = halves_of(model, *cut);
  EXPECT_EQ(test::op_types(halves.tensorrt.graph()), (Names{"Conv", "Relu"}));
  EXPECT_EQ(test::op_types(halves.host.graph()), (Names{"Det", "Neg"}));
  EXPECT_EQ(names_of(halves.host.graph().inputs()), Names{"b"}) << "the image is not needed twice";
  EXPECT_EQ(names_of(halves.tensorrt.graph().outputs()), Names{"b"});
  EXPECT_GT(cut->arithmetic_in_tensorrt, 0.9 * cut->arithmetic);
}

TEST(Cut, goes_behind_what_does_not_run_where_most_is_computed_there) {
  const onnx::Model model = inferred_text_model({image, test::weight("w", {4, 3, 3, 3})},
                                                "a = Neg(x)\n"
                                                "d = Det(a)\n"
                                                "b = ReduceSum<keepdims=0>(d)\n"
                                                "s = Add(a, b)\n"
                                                "y = Conv(s, w)\n",
                                                {"y"});
  const auto cut = find_cut(model, is("Det"));
  ASSERT_TRUE(cut);
  EXPECT_FALSE(cut->tensorrt_is_first);
  const Halves halves = halves_of(model, *cut);
  EXPECT_EQ(test::op_types(halves.host.graph()), (Names{"Neg", "Det"}));
  EXPECT_EQ(test::op_types(halves.tensorrt.graph()), (Names{"ReduceSum", "Add", "Conv"}));
  EXPECT_EQ(names_of(halves.tensorrt.graph().inputs()), (Names{"a", "d"}));
}

TEST(Cut, hands_over_what_is_small_where_only_data_are_moved_between) {
  const onnx::Model model = inferred_text_model({image, test::weight("w", {4, 3, 3, 3})},
                                                "a = Conv(x, w)\n"
                                                "shape = Constant<value=int64([5, 4, 6, 6])>()\n"
                                                "b = Expand(a, shape)\n"
                                                "c = Transpose<perm=[0, 2, 3, 1]>(b)\n"
                                                "y = Det(c)\n",
                                                {"y"});
  const auto cut = find_cut(model, is("Det"));
  ASSERT_TRUE(cut);
  EXPECT_EQ(names_of(cut->between), Names{"a"}) << "a fifth of what Expand makes of it";
  EXPECT_EQ(test::op_types(halves_of(model, *cut).tensorrt.graph()), Names{"Conv"});
}

TEST(Cut, does_not_hand_over_what_both_halves_can_compute_from_the_shape_of_an_input) {
  const onnx::Model model =
      inferred_text_model({{"x", onnx::ElementType::f32, {Dim::symbol("n"), 3, 8, 8}}, test::weight("w", {4, 3, 3, 3})},
                          "s = Shape(x)\n"
                          "zero = Constant<value=int64([0])>()\n"
                          "one = Constant<value=int64([1])>()\n"
                          "n = Slice(s, zero, one)\n"
                          "rest = Constant<value=int64([4, 36])>()\n"
                          "to = Concat<axis=0>(n, rest)\n"
                          "a = Conv(x, w)\n"
                          "b = Reshape(a, to)\n"
                          "c = Det(b)\n"
                          "y = Expand(c, n)\n",
                          {"y"});
  const auto cut = find_cut(model, is("Det"));
  ASSERT_TRUE(cut);
  EXPECT_EQ(names_of(cut->between), Names{"b"});
  const Halves halves = halves_of(model, *cut);
  EXPECT_EQ(names_of(halves.host.graph().inputs()), (Names{"x", "b"}));
  const onnx::Model whole = onnx::join(halves.tensorrt, halves.host, {"y"});
  whole.graph().check();
  EXPECT_EQ(test::count_of(whole, "Shape"), 2U) << "each half has its own";
  EXPECT_EQ(names_of(whole.graph().inputs()), Names{"x"});
}

TEST(Cut, outputs_of_both_halves_are_those_of_the_whole) {
  const onnx::Model model = inferred_text_model({image, test::weight("w", {4, 3, 3, 3})},
                                                "a = Conv(x, w)\n"
                                                "y = Relu(a)\n"
                                                "z = Det(y)\n",
                                                {"z", "y", "x"});
  const auto cut = find_cut(model, is("Det"));
  ASSERT_TRUE(cut);
  const Halves halves = halves_of(model, *cut);
  EXPECT_EQ(names_of(halves.tensorrt.graph().outputs()), Names{"y"}) << "handed over, and an output as well";
  EXPECT_EQ(names_of(halves.host.graph().outputs()), (Names{"z", "x"}));
  const onnx::Model whole = onnx::join(halves.tensorrt, halves.host, {"z", "y", "x"});
  whole.graph().check();
  EXPECT_EQ(names_of(whole.graph().outputs()), (Names{"z", "y", "x"}));
}

TEST(Cut, a_node_that_reads_an_outer_tensor_in_its_branch_goes_to_the_host_with_it) {
  onnx::Model model = test::text_model({image, test::weight("w", {4, 3, 3, 3}), {"c", onnx::ElementType::boolean, {}}},
                                       "a = Conv(x, w)\n"
                                       "d = Det(a)\n"
                                       "p = If(c)\n"
                                       "y = Neg(p)\n",
                                       {"y"});
  onnx::Graph& graph = model.graph();
  for (const char* branch : {"then_branch", "else_branch"}) {
    auto inner = std::make_unique<onnx::Graph>(&graph);
    onnx::Node* node = inner->add_node("Neg", {graph.find("d")}, {std::string("in_") + branch});
    inner->add_output(*node->output());
    test::producer(model, "p").attributes[branch] = onnx::NodeAttribute(onnx::AttributeData(std::move(inner)));
  }
  infer_shapes(model);
  const auto cut = find_cut(model, is("Det"));
  ASSERT_TRUE(cut);
  EXPECT_EQ(test::op_types(halves_of(model, *cut).host.graph()), (Names{"Det", "If", "Neg"}));
}

TEST(Cut, there_is_none_where_nothing_fails_or_nothing_would_be_left) {
  const onnx::Model model = inferred_text_model({image}, "a = Det(x)\ny = Neg(a)\n", {"y"});
  EXPECT_FALSE(find_cut(model, is("Tanh")));
  EXPECT_FALSE(find_cut(model, [](const onnx::Node&) { return true; }));
}

TEST(Cut, random_numbers_are_drawn_once) {
  const onnx::Model model = inferred_text_model({image},
                                                "r = RandomUniform<shape=[1, 3, 8, 8]>()\n"
                                                "a = Add(x, r)\n"
                                                "d = Det(a)\n"
                                                "e = Det(r)\n"
                                                "y = Add(d, e)\n",
                                                {"y"});
  const auto cut = find_cut(model, is("Det"));
  ASSERT_TRUE(cut);
  EXPECT_EQ(names_of(cut->between), (Names{"r", "a"}));
  EXPECT_EQ(test::count_of(halves_of(model, *cut).host, "RandomUniform"), 0U);
}

TEST(Arithmetic, counts_sums_of_products_by_their_weights) {
  onnx::Model model = inferred_text_model(
      {image, test::weight("w", {4, 3, 3, 3}), test::weight("m", {8, 5}), test::weight("t", {3, 6, 2, 2})},
      "conv = Conv(x, w)\n"
      "up = ConvTranspose(x, t)\n"
      "product = MatMul(x, m)\n"
      "sum = ReduceSum(x)\n"
      "moved = Transpose(x)\n"
      "relu = Relu(x)\n",
      {"conv", "up", "product", "sum", "moved", "relu"});
  const auto count = [&](const char* output) { return arithmetic_of(test::producer(model, output)); };
  EXPECT_EQ(count("conv"), 2.0 * 4 * 6 * 6 * 3 * 3 * 3);
  EXPECT_EQ(count("up"), 2.0 * 3 * 8 * 8 * 6 * 2 * 2);
  EXPECT_EQ(count("product"), 2.0 * 3 * 8 * 5 * 8);
  EXPECT_EQ(count("sum"), 3.0 * 8 * 8);
  EXPECT_EQ(count("moved"), 0);
  EXPECT_EQ(count("relu"), 3.0 * 8 * 8);
}

std::vector<const onnx::Node*> nodes_of(const onnx::Model& model) {
  const std::vector<onnx::Node*> nodes = model.graph().nodes();
  return {nodes.begin(), nodes.end()};
}

TEST(DetectionTail, a_suppression_is_told_with_its_thresholds_and_the_tensors_that_it_begins_with) {
  const onnx::Model model = inferred_text_model(
      {{"boxes", onnx::ElementType::f32, {1, 100, 4}}, {"logits", onnx::ElementType::f32, {1, 100, 3}}},
      "p = Sigmoid(logits)\n"
      "scores = Transpose<perm=[0, 2, 1]>(p)\n"
      "most = Constant<value=int64([20])>()\n"
      "overlap = Constant<value=float([0.5])>()\n"
      "least = Constant<value=float([0.25])>()\n"
      "y = NonMaxSuppression<center_point_box=1>(boxes, scores, most, "
      "overlap, least)\n",
      {"y"});
  const onnx::Value* boxes = model.graph().find("boxes");
  const onnx::Value* logits = model.graph().find("logits");
  const std::vector<DetectionTail> tails = find_tails(nodes_of(model), {boxes, logits});
  ASSERT_EQ(tails.size(), 1U);
  EXPECT_EQ(tails[0].kind, DetectionTail::Kind::suppression);
  EXPECT_EQ(tails[0].boxes, Names{"boxes"});
  EXPECT_EQ(tails[0].scores, Names{"logits"});
  EXPECT_EQ(tails[0].form, DetectionTail::Boxes::center_and_size);
  EXPECT_EQ(tails[0].most, 20);
  EXPECT_EQ(tails[0].overlap, 0.5);
  EXPECT_EQ(tails[0].lowest_score, 0.25);
}

/// torchvision's exports have this If: without boxes, NonMaxSuppression does not run.
TEST(DetectionTail, a_suppression_inside_a_branch_is_told_too) {
  onnx::Model model =
      test::text_model({{"boxes", onnx::ElementType::f32, {1, 100, 4}},
                        {"scores", onnx::ElementType::f32, {1, 1, 100}},
                        {"is_empty", onnx::ElementType::boolean, {}}},
                       "clipped = Relu(boxes)\nmost = Constant<value=int64([20])>()\ny = If(is_empty)\n", {"y"});
  onnx::Graph& graph = model.graph();
  const auto branch = [&](const char* name, const std::string& op_type, const std::vector<onnx::Value*>& inputs) {
    auto inner = std::make_unique<onnx::Graph>(&graph);
    std::vector<onnx::Value*> read = inputs;
    if (!read.empty()) read.front() = inner->add_node("Neg", {read.front()}, {"moved"})->output();
    onnx::Node* node = inner->add_node(op_type, read, {std::string("in_") + name});
    inner->add_output(*node->output());
    test::producer(model, "y").attributes[name] = onnx::NodeAttribute(onnx::AttributeData(std::move(inner)));
  };
  branch("then_branch", "Constant", {});
  branch("else_branch", "NonMaxSuppression", {graph.find("clipped"), graph.find("scores"), graph.find("most")});
  const std::vector<DetectionTail> tails = find_tails(nodes_of(model), {graph.find("boxes"), graph.find("scores")});
  ASSERT_EQ(tails.size(), 1U);
  EXPECT_EQ(tails[0].kind, DetectionTail::Kind::suppression);
  EXPECT_EQ(tails[0].boxes, Names{"boxes"});
  EXPECT_EQ(tails[0].scores, Names{"scores"});
  EXPECT_EQ(tails[0].most, 20);
}

TEST(DetectionTail, the_largest_integer_for_all_boxes_stays_what_it_is) {
  const onnx::Model model = inferred_text_model(
      {{"boxes", onnx::ElementType::f32, {1, 100, 4}}, {"scores", onnx::ElementType::f32, {1, 3, 100}}},
      "most = Constant<value=int64([9223372036854775807])>()\n"
      "y = NonMaxSuppression(boxes, scores, most)\n",
      {"y"});
  const std::vector<DetectionTail> tails =
      find_tails(nodes_of(model), {model.graph().find("boxes"), model.graph().find("scores")});
  ASSERT_EQ(tails.size(), 1U);
  EXPECT_EQ(tails[0].most, std::numeric_limits<std::int64_t>::max());
}

TEST(DetectionTail, the_best_by_score_are_told_where_they_choose_boxes) {
  const std::string text =
      "p = Sigmoid(logits)\n"
      "flat = Flatten(p)\n"
      "k = Constant<value=int64([10])>()\n"
      "best, place = TopK(flat, k)\n"
      "classes = Constant<value=int64(3)>()\n"
      "query = Div(place, classes)\n"
      "last = Constant<value=int64([-1])>()\n"
      "column = Unsqueeze(query, last)\n"
      "four = Constant<value=int64([1, 10, 4])>()\n"
      "wide = Expand(column, four)\n"
      "y = GatherElements<axis=1>(boxes, wide)\n";
  const std::vector<TextInput> detr{{"boxes", onnx::ElementType::f32, {1, 100, 4}},
                                    {"logits", onnx::ElementType::f32, {1, 100, 3}}};
  const onnx::Model model = inferred_text_model(detr, text, {"best", "y"});
  const std::vector<DetectionTail> tails =
      find_tails(nodes_of(model), {model.graph().find("boxes"), model.graph().find("logits")});
  ASSERT_EQ(tails.size(), 1U);
  EXPECT_EQ(tails[0].kind, DetectionTail::Kind::best);
  EXPECT_EQ(tails[0].boxes, Names{"boxes"});
  EXPECT_EQ(tails[0].scores, Names{"logits"});
  EXPECT_EQ(tails[0].most, 10);

  const std::vector<TextInput> classifier{{"boxes", onnx::ElementType::f32, {1, 100, 4}}};
  const onnx::Model other =
      inferred_text_model(classifier, "k = Constant<value=int64([2])>()\nv, i = TopK(boxes, k)\n", {"v", "i"});
  EXPECT_TRUE(find_tails(nodes_of(other), {other.graph().find("boxes")}).empty()) << "a TopK alone is no detector";
}

}  // namespace
}  // namespace graft::inspect

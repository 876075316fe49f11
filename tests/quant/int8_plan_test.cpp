// Tests which nodes of a small network become int8, where tensors are rounded, and the cost of this.
#include "quant/plan/int8_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "quant/plan/int8_cost.hpp"
#include "tests/support/text_model.hpp"

namespace graft::quant::int8_plan_test {
namespace {

using test::TextInput;
using test::weight;
using testing::ElementsAre;
using testing::HasSubstr;

const TextInput image{"x", onnx::ElementType::f32, {1, 4, 8, 8}};

onnx::Model prepared(const std::string& nodes, const std::vector<std::string>& outputs = {"y"},
                     EightBits type = EightBits::int8) {
  const onnx::Model model = test::inferred_text_model(
      {image, weight("w", {4, 4, 3, 3}), weight("v", {4, 4, 3, 3}), {"given", onnx::ElementType::f32, {4, 4, 3, 3}}},
      nodes, outputs);
  return prepare_for_int8(model, type);
}

const Int8Node& planned(const Int8Plan& plan, const std::string& output) {
  return *std::find_if(plan.nodes.begin(), plan.nodes.end(),
                       [&](const Int8Node& node) { return node.node.id == output; });
}

std::vector<std::string> kinds(const Int8Plan& plan) {
  std::vector<std::string> all;
  for (const Int8Node& node : plan.nodes) {
    all.push_back(node.node.id + ": " + std::string(to_string(node.kind, plan.type)));
  }
  return all;
}

std::vector<std::string> rounded(const Int8Plan& plan) {
  std::vector<std::string> names;
  for (const auto& [name, root] : plan.tensors) names.push_back(name);
  return names;
}

bool share_a_scale(const Int8Plan& plan, const std::string& a, const std::string& b) {
  return plan.tensors.at(a) == plan.tensors.at(b);
}

/// Returns a separate scale for each tensor, in place of a calibration.
Int8Scales scales_for(const Int8Plan& plan) {
  Int8Scales scales;
  float scale = 0.5F;
  for (const auto& [name, root] : plan.tensors) scales.emplace(root, scale /= 2);
  return scales;
}

TEST(Int8Plan, LayersComputeActivationsFollowAndPoolsPassOn) {
  const Int8Plan plan =
      plan_int8(prepared("a = Conv<pads=[1, 1, 1, 1]>(x, w)\nb = Relu(a)\n"
                         "c = MaxPool<kernel_shape=[2, 2], strides=[2, 2]>(b)\ny = Conv(c, v)"));
  EXPECT_THAT(kinds(plan), ElementsAre("a: int8", "b: fused", "c: int8", "y: int8"));
  EXPECT_EQ(planned(plan, "a").kind, Int8Kind::computes);
  EXPECT_EQ(planned(plan, "a").axis, 0U);
  EXPECT_EQ(planned(plan, "c").kind, Int8Kind::moves);
  EXPECT_THAT(rounded(plan), ElementsAre("b", "c", "x"));
  EXPECT_TRUE(share_a_scale(plan, "b", "c"));
  EXPECT_FALSE(share_a_scale(plan, "b", "x"));
}

TEST(Int8Plan, WhatAnOutputOfTheNetworkNeedsInF32IsNotPassedOnInInt8) {
  const Int8Plan plan = plan_int8(prepared("a = Conv(x, w)\ny = MaxPool<kernel_shape=[2, 2]>(a)"));
  EXPECT_THAT(kinds(plan), ElementsAre("a: int8", "y: f32"));
  EXPECT_EQ(planned(plan, "y").reason, "'y' is an output of the network");
  EXPECT_THAT(rounded(plan), ElementsAre("x"));
}

TEST(Int8Plan, ASumIsPartOfTheLayerBeforeItAndReadsTheOtherSideInInt8) {
  const Int8Plan plan = plan_int8(prepared("a = Conv<pads=[1, 1, 1, 1]>(x, w)\ns = Add(a, x)\ny = Conv(s, v)"));
  EXPECT_THAT(kinds(plan), ElementsAre("a: int8", "s: int8", "y: int8"));
  EXPECT_THAT(planned(plan, "s").inputs, ElementsAre(1U));
  EXPECT_THAT(rounded(plan), ElementsAre("s", "x"));
}

TEST(Int8Plan, ANodeThatIsKeptSaysWhyAndWhatStaysWithItSaysWhatReadsIt) {
  const onnx::Model model = prepared("a = Conv(x, w)\nb = MaxPool<kernel_shape=[2, 2]>(a)\ny = Conv(b, v)");
  const Int8Plan plan = plan_int8(model, {.kept = {{"y", "asked for"}}});
  EXPECT_THAT(kinds(plan), ElementsAre("a: int8", "b: f32", "y: f32"));
  EXPECT_EQ(planned(plan, "y").reason, "asked for");
  EXPECT_FALSE(planned(plan, "y").by_form);
  EXPECT_TRUE(planned(plan, "b").by_form);
  EXPECT_THAT(planned(plan, "b").reason, HasSubstr("(Conv) reads its output in f32"));
  EXPECT_THAT(rounded(plan), ElementsAre("x"));
  EXPECT_THAT(plan.candidates, testing::IsSupersetOf({"x", "b"})) << "an earlier plan may have rounded it";
}

TEST(Int8Plan, LayersThatCannotBeStoredInInt8SayWhyNot) {
  const Int8Plan plan =
      plan_int8(prepared("a = Conv(x, given)\nb = ConvTranspose(a, w)\nc = Softmax(b)\ny = Conv(c, v)"));
  EXPECT_EQ(planned(plan, "a").reason, "its weight is not a constant");
  EXPECT_THAT(planned(plan, "b").reason, HasSubstr("ConvTranspose in f32"));
  EXPECT_EQ(planned(plan, "c").reason, "TensorRT has no int8 Softmax; its output is rounded to int8");
}

// The planner uses is_data_movement() of the operator's definition.
TEST(Int8Plan, OperatorsThatOnlyMoveElementsKeepTheScale) {
  const auto plan = [](const std::string& op) {
    return plan_int8(prepared("a = Conv(x, w)\nb = " + op + "(a)\ny = Conv(b, v)"));
  };
  for (const char* moves : {"graft::Upsampling<mode=\"nearest\", scales=[2.0]>",
                            "graft::Padding<mode=\"reflect\", pads=[0, 0, 1, 1, 0, 0, 1, 1]>",
                            "graft::Padding<mode=\"constant\", pads=[0, 0, 1, 1, 0, 0, 1, 1]>"}) {
    const Int8Plan found = plan(moves);
    ASSERT_TRUE(planned(found, "b").has_int8_form) << moves;
    EXPECT_TRUE(share_a_scale(found, "a", "b")) << moves;
  }
  for (const char* computes : {"graft::Upsampling<mode=\"linear\", scales=[2.0]>", "graft::LeakyReLU<alpha=0.1>",
                               "graft::Padding<mode=\"constant\", value=1.0, pads=[0, 0, 1, 1, 0, 0, 1, 1]>"}) {
    const Int8Plan found = plan(computes);
    ASSERT_TRUE(planned(found, "b").has_int8_form) << computes;
    EXPECT_FALSE(share_a_scale(found, "a", "b")) << computes;
  }
}

TEST(Int8Plan, AnOperatorsWeightHasToBeConstant) {
  const auto plan = [](const std::string& own) {
    return plan_int8(prepared("a = graft::Convolution(x, " + own + ")\ny = Conv(a, v)"));
  };
  EXPECT_EQ(planned(plan("w"), "a").axis, 0U);
  EXPECT_EQ(planned(plan("given"), "a").reason, "its weight is not a constant, or is not finite");
}

TEST(PlaceInt8, RoundsATensorOnceAndStoresWeightsPerChannel) {
  const onnx::Model model = prepared("a = Conv(x, w)\nb = Conv(x, v)\ny = Add(a, b)");
  const Int8Plan plan = plan_int8(model);
  const Int8Model placed = place_int8(model, plan, scales_for(plan));
  EXPECT_EQ(placed.quantized_tensors, 1U);
  EXPECT_EQ(test::count_of(placed.model, "QuantizeLinear"), 1U);
  EXPECT_EQ(test::count_of(placed.model, "DequantizeLinear"), 3U) << "x and two weights";
  const onnx::Node& conv = *placed.model.graph().find("a")->producer;
  const onnx::Node& stored = *conv.input(1)->producer;
  EXPECT_EQ(stored.int_or("axis", -1), 0);
  EXPECT_EQ(stored.input(0)->type, onnx::ElementType::i8);
  EXPECT_EQ(stored.input(1)->constant()->element_count(), 4);
}

TEST(PlaceInt8, AnOperatorTakesScalesAsAttributesAndItsWeightInInt8) {
  const onnx::Model model = prepared("a = graft::Convolution(x, w)\ny = Conv(a, v)");
  const Int8Plan plan = plan_int8(model);
  const Int8Scales scales = scales_for(plan);
  const Int8Model placed = place_int8(model, plan, scales);
  const onnx::Node& own = *placed.model.graph().find("a/int8")->producer;
  EXPECT_EQ(own.float_or("x_scale", 0), scales.at("x"));
  EXPECT_EQ(own.float_or("y_scale", 0), scales.at("a"));
  EXPECT_EQ(own.input(0)->type, onnx::ElementType::i8);
  EXPECT_EQ(own.input(1)->type, onnx::ElementType::i8);
  EXPECT_EQ(own.floats("weight_scale")->size(), 4U);
}

TEST(PlaceInt8, AWeightInAttributesStaysThere) {
  std::string numbers = "0.5";
  for (int i = 1; i < 8; ++i) numbers += ", " + std::to_string(i) + ".0";
  const onnx::Model model = prepared("a = graft::Convolution<num_output=2, kernel=[1, 1], kernel_weights=[" + numbers +
                                     "]>(x)\nb = Concat<axis=1>(a, a)\ny = Conv(b, v)");
  const Int8Plan plan = plan_int8(model);
  const Int8Model placed = place_int8(model, plan, scales_for(plan));
  const onnx::Node& own = *placed.model.graph().find("a/int8")->producer;
  EXPECT_EQ(own.inputs.size(), 1U);
  // 127 steps represent the largest number of each half.
  EXPECT_THAT(*own.floats("weight_scale"), ElementsAre(3.F / 127, 7.F / 127));
}

TEST(PlaceInt8, AMissingScaleIsAnInternalError) {
  const onnx::Model model = prepared("y = Conv(x, w)");
  EXPECT_THAT(test::error_of([&] { (void)place_int8(model, plan_int8(model), {}); }), HasSubstr("no scale for 'x'"));
}

TEST(F8Plan, LayersAndOperatorsThatTakeItComputeInF8AndPoolsDoNotPassItOn) {
  const onnx::Model model = prepared(
      "a = Conv(x, w)\nb = graft::LeakyReLU(a)\nc = Transpose<perm=[0, 1, 3, 2]>(b)\nd = Conv(c, v)\n"
      "e = MaxPool<kernel_shape=[1, 1]>(d)\nf = graft::L2Normalize<axes=[1]>(e)\n"
      "y = Conv<pads=[1, 1, 1, 1]>(f, w)",
      {"y"}, EightBits::f8);
  const Int8Plan plan = plan_int8(model, {.type = EightBits::f8});
  EXPECT_THAT(kinds(plan), ElementsAre("a: f8", "b: f8", "c: f8", "d: f8", "e: f32", "f: f32", "y: f8"));
  EXPECT_EQ(planned(plan, "f").reason, "L2Normalize has no f8 form");
  EXPECT_TRUE(share_a_scale(plan, "b", "c"));
  EXPECT_FALSE(share_a_scale(plan, "a", "b"));

  const Int8Model placed = place_int8(model, plan, scales_for(plan));
  EXPECT_NO_THROW(placed.model.graph().check());
  EXPECT_GE(placed.model.graph().opset(), 19) << "the first that has it";
  const onnx::Node& own = *placed.model.graph().find("b/f8")->producer;
  EXPECT_EQ(own.input(0)->type, onnx::ElementType::f8e4m3fn);
  EXPECT_EQ(own.output()->type, onnx::ElementType::f8e4m3fn);
  EXPECT_EQ(own.float_or("x_scale", 0), scales_for(plan).at(plan.tensors.at("a")));
  const onnx::Node& weights = *placed.model.graph().find("a")->producer->input(1)->producer;
  EXPECT_EQ(weights.input(0)->type, onnx::ElementType::f8e4m3fn);
  EXPECT_EQ(weights.input(1)->constant()->element_count(), 4);
}

TEST(F8Plan, DataMovementOfGraftKeepsItsScale) {
  const auto plan = [](const std::string& own) {
    const onnx::Model model = prepared("a = Conv(x, w)\nb = " + own + "(a)\ny = Conv(b, v)", {"y"}, EightBits::f8);
    return plan_int8(model, {.type = EightBits::f8});
  };
  for (const char* own : {"graft::Padding<mode=\"reflect\", pads=[0, 0, 1, 1, 0, 0, 1, 1]>",
                          "graft::Upsampling<mode=\"nearest\", scales=[2.0]>"}) {
    ASSERT_TRUE(planned(plan(own), "b").has_int8_form) << own;
    EXPECT_TRUE(share_a_scale(plan(own), "a", "b")) << own;
  }
  EXPECT_EQ(planned(plan("graft::Upsampling<mode=\"linear\", scales=[2.0]>"), "b").reason, "Upsampling has no f8 form");
}

TEST(Int8Cost, CountsTheProductsOfLayersAndOperatorsByTheTypeThatTheyComputeIn) {
  // There are 6 x 6 results in 4 channels, each a sum of 36 products.
  constexpr double products = 36. * 4 * 36;
  for (const char* layer : {"Conv(x, w)", "graft::Convolution(x, w)"}) {
    const onnx::Model model = prepared(std::string("a = ") + layer + "\ny = Conv(a, v)");
    const Int8Cost all = cost_of(model, plan_int8(model));
    EXPECT_DOUBLE_EQ(all.f32_multiply_adds, 0) << layer;
    const Int8Cost less = cost_of(model, plan_int8(model, {.kept = {{"a", "a test"}}}));
    EXPECT_DOUBLE_EQ(less.f32_multiply_adds, products) << layer;
    EXPECT_DOUBLE_EQ(less.int8_multiply_adds, all.int8_multiply_adds - products) << layer;
    EXPECT_GT(less.bytes_moved, all.bytes_moved) << layer;
    EXPECT_GT(less.weighted_multiply_adds(), all.weighted_multiply_adds()) << layer;
  }
}

}  // namespace
}  // namespace graft::quant::int8_plan_test

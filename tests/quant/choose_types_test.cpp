// Tests which nodes of a small network stay in f32 when the others become f16, and the reasons.
#include "quant/search/choose_types.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "runtime/default_engine.hpp"
#include "tests/support/text_model.hpp"

namespace graft::quant::choose_types_test {
namespace {

using runtime::default_engine;
using test::TextInput;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TextInput constant(const std::string& name, double value) {
  return {name, onnx::TensorData::scalar_of(onnx::ElementType::f32, value)};
}

onnx::Model network(const std::string& nodes, const std::vector<std::string>& outputs = {"y"}) {
  return test::text_model(
      {{"x", onnx::ElementType::f32, {4}}, constant("half", 0.5), constant("thousand", 1000), constant("million", 1e6)},
      nodes, outputs);
}

ChosenTypes choose(const onnx::Model& model, report::Precision precision = report::Precision::f16,
                   std::vector<std::string> keep = {}, std::vector<std::string> only = {}) {
  ChooseOptions options;
  options.precision = precision;
  options.keep = std::move(keep);
  options.only = std::move(only);
  options.data = {{{"x", onnx::TensorData::from_floats({0.25F, -1.5F, 3.F, 100.F})}}};
  options.threads = 1;
  return choose_types(runtime::default_engine(), model, options);
}

/// "y: overflow"
std::vector<std::string> kept(const ChosenTypes& chosen) {
  std::vector<std::string> all;
  for (const ChosenNode* node : chosen.kept()) {
    all.push_back(node->node.node.id + ": " + std::string(to_string(*node->why)));
  }
  return all;
}

TEST(ChooseTypes, WhatFitsLeavesF32) {
  const ChosenTypes chosen = choose(network("a = Mul(x, half)\ny = Tanh(a)"));
  EXPECT_TRUE(chosen.met);
  EXPECT_EQ(chosen.limit_db, limit_of(report::Precision::f16));
  EXPECT_EQ(chosen.runs, 1U);
  EXPECT_THAT(kept(chosen), IsEmpty());
  for (const ChosenNode& node : chosen.nodes) EXPECT_EQ(node.node.type, NodeType::narrow) << node.node.node.id;
  EXPECT_EQ(chosen.typed.casts, 2U) << "of the input and of the output";
}

TEST(ChooseTypes, BothSidesOfATensorBeyondTheRangeStay) {
  // 100 * 1000 exceeds 65504; the result of the nodes that bound and halve it does not.
  const ChosenTypes chosen = choose(network("a = Mul(x, thousand)\nb = Tanh(a)\ny = Mul(b, half)"));
  EXPECT_TRUE(chosen.met);
  EXPECT_THAT(kept(chosen), ElementsAre("a: overflow", "b: overflow"));
  EXPECT_THAT(chosen.nodes[0].node.reason, HasSubstr("65504"));
}

TEST(ChooseTypes, BrainFloatsHaveTheRange) {
  const ChosenTypes chosen =
      choose(network("a = Mul(x, thousand)\nb = Tanh(a)\ny = Mul(b, half)"), report::Precision::bf16);
  EXPECT_TRUE(chosen.met);
  EXPECT_THAT(kept(chosen), IsEmpty());
}

TEST(ChooseTypes, ADifferenceThatTheTypeLosesStaysSoThatTheOutputMeetsTheLimit) {
  // The values are 1000 plus a fraction: f16 has steps of a half there, so the fraction is lost.
  const ChosenTypes chosen = choose(network("f = Tanh(x)\na = Add(f, thousand)\ny = Sub(a, thousand)"));
  EXPECT_TRUE(chosen.met);
  ASSERT_EQ(chosen.plain.size(), 1U);
  EXPECT_LT(*chosen.plain[0].snr_db, chosen.limit_db);
  EXPECT_GE(*chosen.outputs[0].snr_db, chosen.limit_db);
  const std::vector<std::string> names = kept(chosen);
  EXPECT_THAT(names, testing::Contains("a: loss"));
  EXPECT_THAT(names, testing::Not(testing::Contains("f: loss"))) << "is not what loses";
}

TEST(ChooseTypes, NodesThatLoseLittleEachAreKeptTogether) {
  std::string nodes = "a0 = Mul(x, factor)\n";
  for (int i = 1; i < 12; ++i) nodes += "a" + std::to_string(i) + " = Mul(a" + std::to_string(i - 1) + ", factor)\n";
  const onnx::Model model = test::text_model({{"x", onnx::ElementType::f32, {64}}, constant("factor", 1.0625)},
                                             nodes + "y = Neg(a11)", {"y"});
  std::vector<float> x(64);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 1.F + static_cast<float>(i * i) / 777.F;
  ChooseOptions options;
  options.data = {{{"x", onnx::TensorData::from_floats(x)}}};
  options.threads = 1;
  options.limit_db = *choose_types(default_engine(), model, options).outputs[0].snr_db + 2;
  const ChosenTypes chosen = choose_types(default_engine(), model, options);
  EXPECT_TRUE(chosen.met);
  EXPECT_GE(verify::decibels_of(chosen.outputs[0]), *options.limit_db);
  EXPECT_THAT(kept(chosen), testing::Each(HasSubstr(": loss")));
}

/// If a whole row exceeds the range of f16, its elements still differ in f32, but all are minus infinity in f16, from
/// which Softmax computes NaN.
TEST(ChooseTypes, AMaskOfAWholeRowIsKeptTogether) {
  const onnx::Model model = test::text_model(
      {{"x", onnx::ElementType::f32, {2, 4}}, {"mask", onnx::ElementType::f32, {2, 4}}, constant("low", -1e9)},
      "m = Mul(mask, low)\nn = Add(m, x)\nb = Softmax(n)\ny = Tanh(b)", {"y"});
  ChooseOptions options;
  options.threads = 1;
  const auto rows = [](const std::vector<double>& numbers) {
    return onnx::TensorData::from_numbers(onnx::ElementType::f32, {2, 4}, numbers);
  };
  const onnx::TensorData ones = rows(std::vector<double>(8, 1));
  options.data = {{{"x", ones}, {"mask", rows({0, 0, 0, 2, 0, 0, 0, 3})}}};
  const ChosenTypes without = choose_types(default_engine(), model, options);
  EXPECT_TRUE(without.met);
  EXPECT_THAT(kept(without), IsEmpty());
  EXPECT_THAT(without.notes, testing::Contains(HasSubstr("the value becomes minus infinity")));

  options.data = {{{"x", ones}, {"mask", rows({0, 0, 0, 2, 2, 3, 2, 3})}}};
  const ChosenTypes with = choose_types(default_engine(), model, options);
  EXPECT_TRUE(with.met);
  EXPECT_THAT(kept(with), ElementsAre("m: overflow", "n: overflow", "b: overflow"));
  EXPECT_THAT(with.notes, testing::Not(testing::Contains(HasSubstr("minus infinity"))));
}

TEST(ChooseTypes, ATinyBiasKeepsNothing) {
  const auto tensor = [](std::vector<std::int64_t> dims, double number) {
    const auto count = static_cast<std::size_t>(dims[0] * dims[1]);
    return onnx::TensorData::from_numbers(onnx::ElementType::f32, std::move(dims), std::vector<double>(count, number));
  };
  const onnx::Model model = test::text_model(
      {{"x", onnx::ElementType::f32, {1, 2}}, {"w", tensor({2, 3}, 0.3)}, {"bias", tensor({1, 3}, 1e-9)}},
      "y = Gemm(x, w, bias)", {"y"});
  ChooseOptions options;
  options.data = {{{"x", onnx::TensorData::from_numbers(onnx::ElementType::f32, {1, 2}, {0.5, 2})}}};
  options.threads = 1;
  const ChosenTypes chosen = choose_types(default_engine(), model, options);
  EXPECT_TRUE(chosen.met);
  EXPECT_THAT(kept(chosen), IsEmpty());
  ASSERT_EQ(chosen.nodes.size(), 1U);
  EXPECT_EQ(chosen.nodes[0].node.type, NodeType::narrow) << chosen.nodes[0].node.reason;
}

TEST(ChooseTypes, WhatIsAskedForStaysAndOnlyLeavesTheRest) {
  const onnx::Model model = network("a = Tanh(x)\nb = Sigmoid(a)\ny = Neg(b)");
  EXPECT_THAT(kept(choose(model, report::Precision::f16, {"Sigmoid"})), ElementsAre("b: asked"));
  EXPECT_THAT(kept(choose(model, report::Precision::f16, {}, {"b"})), ElementsAre("a: asked", "y: asked"));
}

TEST(ChooseTypes, APatternThatMatchesNothingIsAnErrorWithTheNearestName) {
  const onnx::Model model = network("layer = Tanh(x)\ny = Neg(layer)");
  const std::string error = test::error_of([&] { (void)choose(model, report::Precision::f16, {"layar"}); });
  EXPECT_THAT(error, HasSubstr("QuantizeOptions::keep layar"));
  EXPECT_THAT(error, HasSubstr("did you mean layer?"));
}

}  // namespace
}  // namespace graft::quant::choose_types_test

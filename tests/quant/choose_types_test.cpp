// Which nodes of a small network stay in f32 when the rest becomes f16, and why.
#include "quant/choose_types.hpp"

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

ChosenTypes choose(const onnx::Model& model, verify::Precision precision = verify::Precision::f16,
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
  EXPECT_EQ(chosen.limit_db, limit_of(verify::Precision::f16));
  EXPECT_EQ(chosen.runs, 1U);
  EXPECT_THAT(kept(chosen), IsEmpty());
  for (const ChosenNode& node : chosen.nodes) EXPECT_EQ(node.node.type, NodeType::narrow) << node.node.node.id;
  EXPECT_EQ(chosen.typed.casts, 2U) << "of the input and of the output";
}

TEST(ChooseTypes, BothSidesOfATensorBeyondTheRangeStay) {
  // 100 * 1000 is beyond 65504; what halves and bounds it again is not.
  const ChosenTypes chosen = choose(network("a = Mul(x, thousand)\nb = Tanh(a)\ny = Mul(b, half)"));
  EXPECT_TRUE(chosen.met);
  EXPECT_THAT(kept(chosen), ElementsAre("a: overflow", "b: overflow"));
  EXPECT_THAT(chosen.nodes[0].node.reason, HasSubstr("65504"));
}

TEST(ChooseTypes, BrainFloatsHaveTheRange) {
  const ChosenTypes chosen =
      choose(network("a = Mul(x, thousand)\nb = Tanh(a)\ny = Mul(b, half)"), verify::Precision::bf16);
  EXPECT_TRUE(chosen.met);
  EXPECT_THAT(kept(chosen), IsEmpty());
}

TEST(ChooseTypes, ADifferenceThatTheTypeLosesStaysSoThatTheOutputMeetsTheLimit) {
  // 1000 and a fraction: f16 has steps of a half there, and nothing is left of the fraction.
  const ChosenTypes chosen = choose(network("f = Tanh(x)\na = Add(f, thousand)\ny = Sub(a, thousand)"));
  EXPECT_TRUE(chosen.met);
  ASSERT_EQ(chosen.plain.size(), 1U);
  EXPECT_LT(*chosen.plain[0].snr_db, chosen.limit_db);
  EXPECT_GE(*chosen.outputs[0].snr_db, chosen.limit_db);
  const std::vector<std::string> names = kept(chosen);
  EXPECT_THAT(names, testing::Contains("a: loss"));
  EXPECT_THAT(names, testing::Not(testing::Contains("f: loss"))) << "is not what loses";
}

TEST(ChooseTypes, WhatIsAskedForStaysAndOnlyLeavesTheRest) {
  const onnx::Model model = network("a = Tanh(x)\nb = Sigmoid(a)\ny = Neg(b)");
  EXPECT_THAT(kept(choose(model, verify::Precision::f16, {"Sigmoid"})), ElementsAre("b: asked"));
  EXPECT_THAT(kept(choose(model, verify::Precision::f16, {}, {"b"})), ElementsAre("a: asked", "y: asked"));
}

TEST(ChooseTypes, APatternThatMatchesNothingIsAnErrorWithTheNearestName) {
  const onnx::Model model = network("layer = Tanh(x)\ny = Neg(layer)");
  const std::string error = test::error_of([&] { (void)choose(model, verify::Precision::f16, {"layar"}); });
  EXPECT_THAT(error, HasSubstr("QuantizeOptions::keep layar"));
  EXPECT_THAT(error, HasSubstr("did you mean layer?"));
}

}  // namespace
}  // namespace graft::quant::choose_types_test

// Tests on small networks that scales after a layer become part of its weights; improvements_test.py compares the
// results in ONNX Runtime.
#include "quant/plan/fold_scales.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/text_model.hpp"

namespace graft::quant::fold_scales_test {
namespace {

using test::op_types;
using test::text_model;
using test::weight;
using testing::ElementsAre;

onnx::TensorData channels(const std::vector<double>& values) {
  return onnx::TensorData::from_numbers(onnx::ElementType::f32, {2, 1, 1}, values);
}

onnx::Model network(const std::string& nodes, const std::vector<std::string>& outputs = {"y"}) {
  return text_model(
      {{"x", onnx::ElementType::f32, {1, 3, 4, 4}},
       weight("w", {2, 3, 1, 1}),
       {"factor", channels({2, 4})},
       {"summand", channels({1, -1})},
       {"wide", onnx::TensorData::from_numbers(onnx::ElementType::f32, {4}, std::vector<double>{1, 2, 3, 4})}},
      nodes, outputs);
}

std::vector<double> numbers_of(const onnx::Node& node, std::size_t input) {
  return *node.input(input)->constant()->numbers();
}

TEST(FoldScales, AFactorAndASummandForEachChannelBecomeWeightsAndBias) {
  onnx::Model model = network("a = Conv(x, w)\nb = Mul(a, factor)\ny = Add(b, summand)");
  const std::vector<double> before = numbers_of(test::producer(model, "a"), 1);
  EXPECT_EQ(fold_scales(model), 2U);
  EXPECT_THAT(op_types(model.graph()), ElementsAre("Conv"));
  const onnx::Node& conv = test::producer(model, "y");
  const std::vector<double> after = numbers_of(conv, 1);
  ASSERT_EQ(after.size(), before.size());
  for (std::size_t i = 0; i < after.size(); ++i) EXPECT_EQ(after[i], before[i] * (i < 3 ? 2 : 4)) << i;
  EXPECT_THAT(numbers_of(conv, 2), ElementsAre(1, -1));
}

TEST(FoldScales, ALayerWhoseTensorIsReadElsewhereKeepsIt) {
  onnx::Model read = network("a = Conv(x, w)\ny = Mul(a, factor)\nz = Relu(a)", {"y", "z"});
  EXPECT_EQ(fold_scales(read), 0U);
  onnx::Model output = network("a = Conv(x, w)\ny = Mul(a, factor)", {"a", "y"});
  EXPECT_EQ(fold_scales(output), 0U);
}

TEST(FoldScales, WeightsThatTwoLayersReadStay) {
  onnx::Model model = network("a = Conv(x, w)\nb = Mul(a, factor)\nc = Conv(x, w)\ny = Add(b, c)");
  EXPECT_EQ(fold_scales(model), 0U);
}

TEST(FoldScales, AFactorForEachColumnIsNoneForAChannel) {
  onnx::Model model = network("a = Conv(x, w)\ny = Mul(a, wide)");
  EXPECT_EQ(fold_scales(model), 0U);
  EXPECT_THAT(op_types(model.graph()), ElementsAre("Conv", "Mul"));
}

TEST(FoldScales, AnActivationEndsWhatIsFolded) {
  onnx::Model model = network("a = Conv(x, w)\nb = Mul(a, factor)\nc = Relu(b)\ny = Add(c, summand)");
  EXPECT_EQ(fold_scales(model), 1U);
  EXPECT_THAT(op_types(model.graph()), ElementsAre("Conv", "Relu", "Add"));
}

}  // namespace
}  // namespace graft::quant::fold_scales_test

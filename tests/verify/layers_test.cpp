// Tests the comparison tensor by tensor: groups, orders of elements, emulated types.
#include "verify/localize/layers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "core/comparison_text.hpp"
#include "runtime/default_engine.hpp"
#include "tests/support/text_model.hpp"
#include "verify/compare/figures.hpp"
#include "verify/compare/rearrangement.hpp"

namespace graft::verify::layers_test {
namespace {

using runtime::default_engine;

using test::text_model;
using testing::ElementsAre;
using testing::HasSubstr;

onnx::Model chain(const std::string& third) {
  return text_model({{"x", onnx::ElementType::f32, {2, 4}}},
                    "a = Tanh(x)\nb = Exp(a)\n" + third + "\nd = Sqrt(c)\ny = Neg(d)", {"y"});
}

TEST(Layers, FindsTheNodeWithAnyAmountOfMemory) {
  const std::string wrong = "two = Constant<value=float(1.01)>()\nraw = Abs(b)\nc = Mul(raw, two)";
  for (const std::int64_t memory : {std::int64_t{1}, std::int64_t{100}, std::int64_t{1} << 28}) {
    VerifyOptions options;
    options.memory = memory;
    const LayerReport report = compare_layers(runtime::default_engine(), chain("c = Abs(b)"), chain(wrong), options);
    ASSERT_TRUE(report.first.has_value()) << memory;
    EXPECT_EQ(report.layers[report.first->layer].candidate.name, "c");
    EXPECT_THAT(report.first->why, HasSubstr("1.01 times the reference"));
    EXPECT_EQ(report.layers.size(), 5U);
    EXPECT_FALSE(report.equal());
    EXPECT_TRUE(report.layers[1].equal());
    EXPECT_FALSE(report.layers[4].equal());
  }
}

TEST(Layers, ErrorsThatAddUpHaveNoFirstNode) {
  // Each node is within its tolerance, because a node is compared for its actual inputs.
  VerifyOptions options;
  options.absolute = 0.015;
  const std::string step = "s = Constant<value=float(0.01)>()\n";
  const auto sum = [&](const std::string& c, const std::string& d) {
    return text_model({{"x", onnx::ElementType::f32, {2, 4}}}, step + c + "\n" + d, {"d"});
  };
  const LayerReport report =
      compare_layers(runtime::default_engine(), sum("c = Tanh(x)", "d = Tanh(c)"),
                     sum("c0 = Tanh(x)\nc = Add(c0, s)", "d0 = Tanh(c)\nd = Add(d0, s)"), options);
  EXPECT_FALSE(report.first.has_value());
  ASSERT_NE(report.first_different(), nullptr);
  EXPECT_EQ(report.first_different()->candidate.name, "d");
}

/// A tensor that a rewrite moved before a Transpose is compared in its new order, also where its values are rounding
/// noise and do not show the order.
TEST(Layers, MovedTranspositionsShowInTheDimensions) {
  const auto network = [](const std::string& nodes) {
    return text_model({{"x", onnx::ElementType::f32, {1, 4, 5, 3}}},
                      "three = Constant<value=float(3.0)>()\nthird = Constant<value=float(0.33333334)>()\n"
                      "much = Constant<value=float(1e6)>()\n" +
                          nodes,
                      {"y"});
  };
  const onnx::Model reference = network(
      "a = Div(x, three)\nb = Mul(x, third)\nd = Sub(a, b)\nn = Mul(d, much)\n"
      "pads = Constant<value=int64([0, 1, 1, 0, 0, 1, 1, 0])>()\np = Pad<mode=\"reflect\">(n, pads)\ny = Tanh(p)");
  const onnx::Model candidate = network(
      "t = Transpose<perm=[0, 3, 1, 2]>(x)\na = Div(t, three)\nb = Mul(t, third)\nd = Sub(b, a)\nn = Mul(d, much)\n"
      "pads = Constant<value=int64([0, 0, 1, 1, 0, 0, 1, 1])>()\np = Pad<mode=\"reflect\">(n, pads)\n"
      "q = Tanh(p)\ny = Transpose<perm=[0, 2, 3, 1]>(q)");
  const LayerReport report = compare_layers(runtime::default_engine(), reference, candidate);
  EXPECT_TRUE(report.equal());
  EXPECT_FALSE(report.first) << report.first->why;
  for (const ComparedLayer& layer : report.layers) {
    EXPECT_TRUE(layer.difference.incomparable.empty()) << layer.candidate.name << ": " << layer.difference.incomparable;
    EXPECT_TRUE(layer.equal()) << layer.candidate.name << ": " << difference_text(layer.difference);
  }
}

/// If a detector finds no boxes, the transposed indices have no elements, so only their dimensions show the moved
/// Transpose.
TEST(Layers, MovedTranspositionsOfNothingAreNoDifference) {
  const auto network = [](const std::string& nodes) {
    return text_model({{"x", onnx::ElementType::f32, {6}}}, "found = NonZero(x)\n" + nodes, {"y"});
  };
  const onnx::Model reference = network("t = Transpose<perm=[1, 0]>(found)\nplaces = Neg(t)\ny = Abs(places)");
  const onnx::Model candidate =
      network("places = Neg(found)\nturned = Transpose<perm=[1, 0]>(places)\ny = Abs(turned)");
  for (const double some : {0.0, 1.0}) {
    VerifyOptions options;
    options.data.push_back(
        {{"x", onnx::TensorData::from_numbers(onnx::ElementType::f32, {6}, {0, some, 0, some, some, 0})}});
    const LayerReport report = compare_layers(runtime::default_engine(), reference, candidate, options);
    EXPECT_TRUE(report.equal());
    EXPECT_FALSE(report.first) << report.first->why;
    for (const ComparedLayer& layer : report.layers) {
      EXPECT_TRUE(layer.equal()) << layer.candidate.name << ": " << difference_text(layer.difference);
    }
  }
}

TEST(Layers, NoPartnerForAnInputIsAProblem) {
  const onnx::Model two =
      text_model({{"x", onnx::ElementType::f32, {2}}, {"z", onnx::ElementType::f32, {2}}}, "y = Add(x, z)", {"y"});
  const LayerReport report = compare_layers(runtime::default_engine(),
                                            text_model({{"x", onnx::ElementType::f32, {2}}}, "y = Neg(x)", {"y"}), two);
  EXPECT_THAT(report.problems, ElementsAre(HasSubstr("no input 'z'")));
  EXPECT_FALSE(report.equal());
}

TEST(Layers, AnF16CandidateIsRoundedInside) {
  const onnx::Model reference = text_model({{"x", onnx::ElementType::f32, {1, 8}}},
                                           "k = Constant<value=float(300.0)>()\na = Mul(x, k)\n"
                                           "b = Mul(a, a)\ny = Sqrt(b)",
                                           {"y"});
  const onnx::Model candidate = text_model({{"x", onnx::ElementType::f32, {1, 8}}},
                                           "k = Constant<value=float(300.0)>()\nn = Mul(x, k)\n"
                                           "a = Cast<to=10>(n)\nb = Mul(a, a)\nroot = Sqrt(b)\ny = Cast<to=1>(root)",
                                           {"y"});
  VerifyOptions options;
  options.data.push_back(
      {{"x", onnx::TensorData::from_numbers(onnx::ElementType::f32, {1, 8}, {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 3})}});
  const LayerReport report = compare_layers(runtime::default_engine(), reference, candidate, options);
  ASSERT_TRUE(report.first.has_value());
  const ComparedLayer& layer = report.layers[report.first->layer];
  EXPECT_EQ(layer.candidate.name, "b");
  EXPECT_EQ(layer.candidate_range.infinite, 1);
  EXPECT_THAT(layer.diagnosis, HasSubstr("1 infinite in the candidate"));
}

onnx::TensorData counted(std::vector<std::int64_t> dims) {
  std::int64_t count = 1;
  for (const std::int64_t size : dims) count *= size;
  std::vector<double> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 1);
  return onnx::TensorData::from_numbers(onnx::ElementType::f32, std::move(dims), numbers);
}

TEST(Rearrangement, IsFoundAndCanBeRepeated) {
  const onnx::TensorData image = counted({2, 3, 4, 5});
  Rearrangement order;
  order.dims = image.dims;
  order.axes = {0, 2, 3, 1};
  order.final_dims = {2, 60};
  const onnx::TensorData wrong = rearrange(image, order);
  onnx::TensorData flat = image;
  flat.dims = {2, 60};
  const auto known = find_rearrangement(flat, wrong, {}, {{2, 3, 4, 5}});
  ASSERT_TRUE(known.has_value());
  EXPECT_EQ(known->kind, Rearrangement::Kind::flattened);
  EXPECT_THAT(known->text, HasSubstr("NHWC in the candidate, NCHW in the reference"));
  EXPECT_TRUE(rearrange(flat, *known).same_as(wrong));
  const auto guessed = find_rearrangement(flat, wrong, {});
  ASSERT_TRUE(guessed.has_value());
  EXPECT_EQ(guessed->kind, Rearrangement::Kind::flattened);
  EXPECT_TRUE(rearrange(flat, *guessed).same_as(wrong));
}

TEST(Rearrangement, IsNotFoundWhereThereIsNone) {
  const onnx::TensorData image = counted({2, 3, 4, 5});
  EXPECT_FALSE(find_rearrangement(image, image, {}).has_value());
  std::vector<double> numbers = *image.numbers();
  numbers.back() += 1;
  EXPECT_FALSE(
      find_rearrangement(image, onnx::TensorData::from_numbers(onnx::ElementType::f32, image.dims, numbers), {})
          .has_value());
  const onnx::TensorData ones = onnx::TensorData::from_numbers(onnx::ElementType::f32, {2, 2}, {1, 1, 1, 1});
  EXPECT_FALSE(find_rearrangement(ones, ones, {}).has_value());
}

onnx::TensorData waves(std::vector<std::int64_t> dims, double frequency) {
  onnx::TensorData tensor = counted(std::move(dims));
  std::vector<double> numbers = *tensor.numbers();
  for (double& number : numbers) number = 1.5 + std::sin(frequency * number);
  return onnx::TensorData::from_numbers(onnx::ElementType::f32, tensor.dims, numbers);
}

TEST(Rearrangement, AWideToleranceIsNoEvidence) {
  // Other values of the same distribution: after sorting, each is near to one of the reference.
  const Tolerance wide{.relative = 0, .absolute = 0.1, .of_largest = 0};
  for (const std::vector<std::int64_t>& dims :
       {std::vector<std::int64_t>{450, 1}, {1, 450}, {30, 15}, {2, 3, 5, 15}, {2, 225}}) {
    const auto found = find_rearrangement(waves(dims, 1.0), waves(dims, 1.7), wide);
    EXPECT_FALSE(found.has_value()) << found->text;
  }
}

TEST(Rearrangement, NoiseIsNoOtherOrder) {
  const onnx::TensorData reference = waves({4, 250}, 1.3);
  std::vector<double> numbers = *reference.numbers();
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] += i % 2 == 0 ? 0.01 : -0.01;
  const onnx::TensorData noisy = onnx::TensorData::from_numbers(onnx::ElementType::f32, reference.dims, numbers);
  const auto found = find_rearrangement(reference, noisy, {.relative = 0, .absolute = 0.009, .of_largest = 0});
  EXPECT_FALSE(found.has_value()) << found->text;
}

TEST(Rearrangement, FewDifferentNumbersTellNoOrder) {
  // A mask with the same number of ones at other positions.
  std::vector<double> mask(64, 0);
  for (const std::size_t i : {0, 3, 4, 9, 17, 18, 30, 41, 50, 63}) mask[i] = 1;
  std::vector<double> other(64, 0);
  for (const std::size_t i : {1, 2, 8, 11, 13, 29, 33, 47, 52, 60}) other[i] = 1;
  const auto found = find_rearrangement(onnx::TensorData::from_numbers(onnx::ElementType::boolean, {64}, mask),
                                        onnx::TensorData::from_numbers(onnx::ElementType::boolean, {64}, other), {});
  EXPECT_FALSE(found.has_value()) << found->text;
}

TEST(Rearrangement, OnlyWhatMovedIsNamed) {
  const onnx::TensorData reference = waves({40, 3}, 1.3);
  Rearrangement swap;
  swap.dims = swap.final_dims = reference.dims;
  swap.order.resize(40);
  std::iota(swap.order.begin(), swap.order.end(), 0);
  std::swap(swap.order[3], swap.order[29]);
  const auto found = find_rearrangement(reference, rearrange(reference, swap), {});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->order, swap.order);
  EXPECT_THAT(found->text, HasSubstr("[3, 29] are the reference's [29, 3]"));
}

TEST(Figures, HistogramAndSignalToNoise) {
  const onnx::TensorData reference = onnx::TensorData::from_numbers(onnx::ElementType::f32, {4}, {1, 10, -100, 0});
  const onnx::TensorData candidate =
      onnx::TensorData::from_numbers(onnx::ElementType::f32, {4}, {1, 11, -100, std::nan("")});
  const ErrorFigures figures = error_figures(reference, candidate);
  EXPECT_THAT(figures.histogram.counts, ElementsAre(2, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1));
  EXPECT_NEAR(*figures.snr_db, 10 * std::log10((1.0 + 100 + 10000) / 1), 1e-6);
}

TEST(RoundingEffect, CountsWhatATypeLoses) {
  const onnx::TensorData tensor =
      onnx::TensorData::from_numbers(onnx::ElementType::f32, {6}, {1, 70000, 1e-9, 1e-6, -0.5, 0});
  const RoundingEffect f16 = rounding_effect(tensor, Precision::f16);
  EXPECT_EQ(f16.overflow, 1);
  EXPECT_EQ(f16.underflow, 1);
  EXPECT_EQ(f16.subnormal, 1);
  EXPECT_EQ(rounding_effect(tensor, Precision::bf16).overflow, 0);
  const RoundingEffect int8 = rounding_effect(tensor, Precision::int8, 1);
  EXPECT_EQ(int8.saturated, 1);
  EXPECT_EQ(int8.underflow, 3);
}

}  // namespace
}  // namespace graft::verify::layers_test

// Tests networks that amplify rounding errors: equal networks pass, and a fault above the noise floor is found.
#include "verify/judge/noise_floor.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/comparison_text.hpp"
#include "runtime/default_engine.hpp"
#include "tests/support/recent_engine.hpp"
#include "tests/support/text_model.hpp"
#include "verify/compare/verify_models.hpp"
#include "verify/inputs/input_ranges.hpp"
#include "verify/judge/noisy_model.hpp"
#include "verify/judge/rounding_noise.hpp"
#include "verify/localize/layers.hpp"
#include "verify/prove/prove.hpp"

namespace graft::verify::noise_floor_test {
namespace {

using runtime::default_engine;

using test::text_model;
using testing::HasSubstr;

constexpr std::int64_t channels = 3;

onnx::Model network(const std::string& nodes) {
  return text_model({{"x", onnx::ElementType::f32, {1, channels, 6, 6}}}, nodes, {"y"});
}

/// A network in two forms that differ only in their rounding.
struct Forms {
  std::string reference;
  std::string candidate;
};

/// Appends stages to both forms.
class Writer {
 public:
  explicit Writer(std::uint64_t seed) : random_(seed) {}

  Forms write() {
    near_constant();
    const std::uint64_t stages = 1 + random_() % 3;
    for (std::uint64_t i = 0; i < stages; ++i) {
      constexpr std::uint64_t kinds = 6;
      switch (random_() % kinds) {
        case 0: instance_norm(); break;
        case 1: difference_of_near_equals(); break;
        case 2: division_by_small(); break;
        case 3: exp_and_tanh(); break;
        case 4: centered(); break;
        default: near_constant(); instance_norm();
      }
    }
    return {.reference = reference_ + "y = Identity(" + at_ + ")\n",
            .candidate = candidate_ + "last = Identity(" + at_ + ")\n"};
  }

 private:
  std::string constant(double value) {
    const std::string name = fmt::format("c{}", ++count_);
    both(fmt::format("{} = Constant<value=float({:.9g})>()\n", name, value));
    return name;
  }

  void both(const std::string& text) {
    reference_ += text;
    candidate_ += text;
  }

  /// Appends a stage to both forms; {0} is the current tensor, {1} the next one.
  void next(const std::string& reference, const std::string& candidate) {
    const std::string name = fmt::format("t{}", ++count_);
    reference_ += fmt::format(fmt::runtime(reference), at_, name) + "\n";
    candidate_ += fmt::format(fmt::runtime(candidate), at_, name) + "\n";
    at_ = name;
  }

  /// Appends a scale and a shift to a small variance around a large mean, as in an image of one color.
  void near_constant() {
    const double scale = std::pow(10.0, -static_cast<double>(random_() % 6));
    const double mean = std::pow(10.0, static_cast<double>(random_() % 4)) * 1.27;
    next("{1} = Mul({0}, " + constant(scale) + ")", "{1} = Div({0}, " + constant(1 / scale) + ")");
    const std::string offset = constant(mean);
    next("{1} = Add({0}, " + offset + ")", "{1} = Add(" + offset + ", {0})");
    const std::string range = constant(127.5);
    const std::string inverse = constant(1 / 127.5);
    next("{1} = Div({0}, " + range + ")", "{1} = Mul({0}, " + inverse + ")");
  }

  void instance_norm() {
    const std::string scale = fmt::format("c{}", ++count_);
    const std::string bias = fmt::format("c{}", ++count_);
    const std::string axes = fmt::format("c{}", ++count_);
    both(scale + " = Constant<value=float([1.5, 0.5, 2.0])>()\n" + bias +
         " = Constant<value=float([0.1, 0.0, -1.0])>()\n" + axes + " = Constant<value=int64([1, 3, 1, 1])>()\n");
    const std::string epsilon = constant(1e-5);
    next("{1} = InstanceNormalization<epsilon=1e-5>({0}, " + scale + ", " + bias + ")",
         "{1}m = ReduceMean<axes=[2, 3]>({0})\n{1}d = Sub({0}, {1}m)\n{1}q = Mul({1}d, {1}d)\n"
         "{1}v = ReduceMean<axes=[2, 3]>({1}q)\n{1}e = Add({1}v, " +
             epsilon + ")\n{1}r = Sqrt({1}e)\n{1}i = Reciprocal({1}r)\n{1}s = Reshape(" + scale + ", " + axes +
             ")\n{1}b = Reshape(" + bias + ", " + axes +
             ")\n{1}k = Mul({1}i, {1}s)\n{1}n = Mul({1}d, {1}k)\n{1} = Add({1}n, {1}b)");
  }

  void difference_of_near_equals() {
    const std::string a = constant(1000.001);
    const std::string b = constant(1000);
    next("{1}a = Mul({0}, " + a + ")\n{1}b = Mul({0}, " + b + ")\n{1} = Sub({1}a, {1}b)",
         "{1}i = Div({0}, " + constant(1 / 1000.001) + ")\n{1}b = Mul({0}, " + b + ")\n{1} = Sub({1}i, {1}b)");
  }

  void division_by_small() {
    const std::string bound = constant(1e-4);
    next("{1}q = Mul({0}, {0})\n{1}m = ReduceMean<axes=[1]>({1}q)\n{1}w = Add({1}m, " + bound +
             ")\n{1} = Div({0}, {1}w)",
         "{1}q = Mul({0}, {0})\n{1}m = ReduceMean<axes=[1]>({1}q)\n{1}w = Add({1}m, " + bound +
             ")\n{1}r = Reciprocal({1}w)\n{1} = Mul({1}r, {0})");
  }

  void exp_and_tanh() {
    const std::string one = constant(1);
    next("{1}t = Tanh({0})\n{1}e = Exp({1}t)\n{1} = Sub({1}e, " + one + ")",
         "{1}t = Tanh({0})\n{1}u = Neg({1}t)\n{1}v = Exp({1}u)\n{1}e = Reciprocal({1}v)\n{1} = Sub({1}e, " + one + ")");
  }

  void centered() {
    next("{1}m = ReduceMean<axes=[2, 3]>({0})\n{1} = Sub({0}, {1}m)",
         "{1}p = ReduceMean<axes=[3]>({0})\n{1}m = ReduceMean<axes=[2]>({1}p)\n{1} = Sub({0}, {1}m)");
  }

  std::mt19937_64 random_;
  std::string reference_;
  std::string candidate_;
  std::string at_ = "x";
  std::size_t count_ = 0;
};

/// The largest deviation of any element, and the largest element.
struct Scale {
  double floor = 0;
  double largest = 0;
};

Scale scale_of(const runtime::Engine& engine, const onnx::Model& model, std::size_t seeds) {
  Scale scale;
  NoisyModel noisy(engine, model, {});
  const std::unique_ptr<runtime::CompiledModel> still = engine.compile(model);
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const runtime::TensorMap inputs = make_inputs(model, {.seed = seed});
    const onnx::TensorData expected = still->run(inputs).at("y");
    NoiseFloor floor;
    noisy.run(inputs, [&](const runtime::TensorMap& unmoved, const runtime::TensorMap& moved) {
      floor.add(expected, unmoved.at("y"), moved.at("y"));
    });
    EXPECT_EQ(floor.runs(), NoisyModel::draws);
    scale.floor = std::max(scale.floor, floor.largest());
    scale.largest = std::max(scale.largest, largest_finite(expected));
  }
  return scale;
}

TEST(NoiseFloor, TwoHundredBadlyConditionedNetworks) {
  constexpr std::uint64_t networks = 200;
  constexpr std::size_t seeds = 2;
  const test::RecentEngine engine(default_engine());  // compiles each reference once for three uses
  std::size_t beyond_tolerance = 0;
  for (std::uint64_t seed = 0; seed < networks; ++seed) {
    const Forms forms = Writer(seed).write();
    const onnx::Model reference = network(forms.reference);
    const VerifyOptions options{.seeds = seeds};
    const VerifyReport same =
        verify_models(engine, reference, network(forms.candidate + "y = Identity(last)"), options);
    EXPECT_TRUE(same.equal()) << "seed " << seed << ": " << difference_text(same.outputs.at(0).worst) << "\n"
                              << forms.reference << "\n"
                              << forms.candidate;
    if (same.outputs.at(0).floor) ++beyond_tolerance;

    const Scale scale = scale_of(engine, reference, seeds);
    const Tolerance tolerance = network_tolerance(onnx::ElementType::f32);
    const double fault = 10 * std::max(scale.floor, (tolerance.relative + tolerance.of_largest) * scale.largest);
    std::array<double, channels> shift{};
    shift.at(seed % channels) = fault;
    const VerifyReport other = verify_models(
        engine, reference,
        network(forms.candidate + fmt::format("shift = Constant<value=float([{:.9g}, {:.9g}, {:.9g}])>()\n"
                                              "dims = Constant<value=int64([1, 3, 1, 1])>()\n"
                                              "shifted = Reshape(shift, dims)\ny = Add(last, shifted)",
                                              shift[0], shift[1], shift[2])),
        options);
    EXPECT_FALSE(other.equal()) << "seed " << seed << ": a fault of " << fault << " with a floor of " << scale.floor
                                << "\n"
                                << forms.candidate;
  }
  // With fewer, the networks would not be ill-conditioned.
  EXPECT_GT(beyond_tolerance, networks / 10);
}

/// The first channel has next to no variance, so its normalization is rounding; the others are well conditioned.
constexpr const char* one_bad_channel =
    "share = Constant<value=float([1e-6, 1.0, 1.0])>()\ndims = Constant<value=int64([1, 3, 1, 1])>()\n"
    "shares = Reshape(share, dims)\nscaled = Mul(x, shares)\nmean = Constant<value=float(100.0)>()\n"
    "image = Add(scaled, mean)\nones = Constant<value=float([1.0, 1.0, 1.0])>()\n"
    "zeros = Constant<value=float([0.0, 0.0, 0.0])>()\nn = InstanceNormalization<epsilon=1e-14>(image, ones, zeros)\n";

TEST(NoiseFloor, OnePercentOfOneChannelIsFoundBesideABadOne) {
  const onnx::Model reference = network(std::string(one_bad_channel) + "y = Identity(n)");
  const onnx::Model candidate =
      network(std::string(one_bad_channel) +
              "fault = Constant<value=float([1.0, 1.01, 1.0])>()\nfaults = Reshape(fault, dims)\n"
              "y = Mul(n, faults)");
  const VerifyReport report = verify_models(runtime::default_engine(), reference, candidate);
  EXPECT_FALSE(report.equal());
  ASSERT_TRUE(report.outputs.at(0).floor);
  EXPECT_TRUE(report.outputs.at(0).floor->says_little);
  EXPECT_EQ(report.outputs.at(0).worst.first_index.at(1), 1) << difference_text(report.outputs.at(0).worst);

  const LayerReport layers = compare_layers(runtime::default_engine(), reference, candidate);
  ASSERT_TRUE(layers.first);
  EXPECT_EQ(layers.layers.at(layers.first->layer).candidate.name, "y");
}

TEST(NoiseFloor, ProofsAllowWhatRoundingMakesOfTheOriginal) {
  // (x + c)^2 - c^2 - 2cx equals x^2 except for the last bits of c^2.
  const std::string original =
      "c = Constant<value=float(1000.0)>()\na = Add(x, c)\ns = Mul(a, a)\nc2 = Constant<value=float(1000000.0)>()\n"
      "d = Sub(s, c2)\ntwo_c = Constant<value=float(2000.0)>()\ne = Mul(x, two_c)\ny = Sub(d, e)";
  const ProofResult same = prove_region(runtime::default_engine(), network(original), network("y = Mul(x, x)"));
  EXPECT_TRUE(same.proven) << same.text;
  EXPECT_GT(same.within_noise, 0U) << same.text;
  EXPECT_THAT(same.text, HasSubstr("badly conditioned"));
  const ProofResult other =
      prove_region(runtime::default_engine(), network(original),
                   network("s = Mul(x, x)\nten = Constant<value=float(10.0)>()\ny = Add(s, ten)"));
  EXPECT_FALSE(other.proven) << other.text;
}

TEST(NoiseFloor, LayersAreJudgedByIt) {
  for (const double scale : {1e-3, 1.0, 1e3}) {
    const Forms forms{.reference = fmt::format(
                          "s = Constant<value=float({:.9g})>()\ni = Mul(x, s)\nc = Constant<value=float(127.3)>()\n"
                          "z = Sub(i, i)\nimage = Add(z, c)\nrange = Constant<value=float(127.5)>()\n"
                          "scaled = Div(image, range)\n",
                          scale),
                      .candidate = ""};
    const std::string tail =
        "ones = Constant<value=float([1.0, 1.0, 1.0])>()\nzeros = Constant<value=float([0.0, 0.0, 0.0])>()\n"
        "n = InstanceNormalization<epsilon=1e-12>(scaled, ones, zeros)\ny = Tanh(n)";
    std::string candidate = forms.reference;
    candidate.replace(candidate.find("127.5"), 5, "0.00784313725490196");
    candidate.replace(candidate.find("Div(image"), 3, "Mul");
    const LayerReport report =
        compare_layers(runtime::default_engine(), network(forms.reference + tail), network(candidate + tail));
    EXPECT_TRUE(report.equal()) << scale;
    EXPECT_FALSE(report.first) << scale << ": " << (report.first ? report.first->why : "");
  }
}

TEST(NoiseFloor, IndicesAndSizesThatDependOnRounding) {
  // Both rows differ only by rounding, so either may be the larger one.
  const std::string nodes =
      "third = Constant<value=float(3.0)>()\na = Div(x, third)\nb = Mul(x, inverse)\nd = Sub(a, b)\n"
      "y = ArgMax<axis=1>(d)";
  const VerifyReport report =
      verify_models(runtime::default_engine(), network("inverse = Constant<value=float(0.33333331)>()\n" + nodes),
                    network("inverse = Constant<value=float(0.33333334)>()\n" + nodes));
  EXPECT_TRUE(report.equal()) << difference_text(report.outputs.at(0).worst);
  // Without close values, another index is a difference.
  const VerifyReport other = verify_models(runtime::default_engine(), network("y = ArgMax<axis=1>(x)"),
                                           network("m = Neg(x)\ny = ArgMax<axis=1>(m)"));
  EXPECT_FALSE(other.equal());
  const VerifyReport counted =
      verify_models(runtime::default_engine(), network("f = Floor(x)\ny = Identity(f)"),
                    network("f = Floor(x)\none = Constant<value=float(1.0)>()\ny = Add(f, one)"));
  EXPECT_FALSE(counted.equal());
}

/// Returns a model that selects the scores above a bound. Their number depends on rounding where a score is close to
/// the bound.
onnx::Model selection(const std::string& scores, double bound, std::int64_t rows = 8192) {
  return text_model({{"x", onnx::ElementType::f32, {rows, 48}}},
                    "c = Constant<value=float(10000.0)>()\naxes = Constant<value=int64([1])>()\n" + scores +
                        fmt::format("bound = Constant<value=float({:.9g})>()\npasses = Greater(scores, bound)\n"
                                    "found = NonZero(passes)\nplaces = Transpose<perm=[1, 0]>(found)\n"
                                    "y = GatherND(scores, places)",
                                    bound),
                    {"y"});
}

constexpr const char* sums = "large = Add(x, c)\nscores = ReduceSum<keepdims=0>(large, axes)\n";
/// A second form of the sums, with two more roundings: a mean and a product.
constexpr const char* sums_by_means =
    "large = Add(x, c)\nmeans = ReduceMean<axes=[1], keepdims=0>(large)\ncount = Constant<value=float(48.0)>()\n"
    "scores = Mul(means, count)\n";
/// An f32 number that occurs as a sum, and that the second form rounds to the next number.
constexpr double middle_of_sums = 480000.03125;

TEST(NoiseFloor, SelectionsAreComparedWithinWhatTheDrawsShow) {
  const onnx::Model reference = selection(sums, middle_of_sums);
  const VerifyReport same =
      verify_models(runtime::default_engine(), reference, selection(sums_by_means, middle_of_sums));
  EXPECT_TRUE(same.equal()) << difference_text(same.outputs.at(0).worst);
  ASSERT_TRUE(same.outputs.at(0).worst.selection) << "rounding did not change what is selected";
  EXPECT_GT(same.outputs.at(0).worst.within_noise, 0);
  EXPECT_THAT(difference_text(same.outputs.at(0).worst), HasSubstr("compared without their order"));
  EXPECT_TRUE(compare_layers(runtime::default_engine(), reference, selection(sums_by_means, middle_of_sums)).equal());

  const std::string negative = "n = Neg(x)\nlarge = Add(n, c)\nscores = ReduceSum<keepdims=0>(large, axes)\n";
  for (const onnx::Model& other :
       {selection(sums, 1e9), selection(negative, middle_of_sums), selection(sums_by_means, middle_of_sums - 1)}) {
    const VerifyReport report = verify_models(runtime::default_engine(), reference, other);
    EXPECT_FALSE(report.equal()) << difference_text(report.outputs.at(0).worst);
    EXPECT_FALSE(compare_layers(runtime::default_engine(), reference, other).equal());
  }
}

TEST(NoiseFloor, AsManyOthersAreNotTheSameSelection) {
  const auto tensor = [](const std::vector<double>& numbers) {
    return onnx::TensorData::from_numbers(onnx::ElementType::f32, {static_cast<std::int64_t>(numbers.size())}, numbers);
  };
  const onnx::TensorData reference = tensor({1, 2, 3, 4, 5, 6, 7, 8});
  const Tolerance tolerance = network_tolerance(onnx::ElementType::f32);
  NoiseFloor floor(tolerance);
  floor.add(reference, reference, tensor({1, 2, 3, 4, 5, 6, 7}));
  EXPECT_TRUE(compare(reference, tensor({8, 7, 6, 5, 4, 3, 1}), tolerance, &floor).equal());
  EXPECT_TRUE(compare(reference, tensor({2, 1, 3, 4, 5, 6, 7, 8}), tolerance, &floor).equal());
  EXPECT_FALSE(compare(reference, tensor({11, 12, 13, 14, 15, 16, 17, 18}), tolerance, &floor).equal());
  EXPECT_FALSE(compare(reference, tensor({1, 2, 3, 4, 5}), tolerance, &floor).equal());
  EXPECT_FALSE(compare(reference, tensor({1, 2, 3, 4, 5, 6, std::nan("")}), tolerance, &floor).equal());
  EXPECT_FALSE(compare(reference, tensor({}), tolerance, &floor).equal());
}

TEST(NoiseFloor, OtherDimensionsProveNothing) {
  const ProofResult result = prove_region(runtime::default_engine(), selection(sums, middle_of_sums, 4096),
                                          selection(sums_by_means, middle_of_sums, 4096));
  EXPECT_FALSE(result.proven) << result.text;
  EXPECT_THAT(result.text, HasSubstr("dimensions differ"));
}

TEST(NoiseFloor, AnotherIntegerSaysNothingOfOthersInItsSlices) {
  const std::vector<std::int64_t> dims{1, 8, 8};
  constexpr std::size_t elements = 64;
  const auto tensor = [&](const std::vector<std::size_t>& ones) {
    std::vector<double> numbers(elements, 0.0);
    for (const std::size_t place : ones) numbers.at(place) = 1;
    return onnx::TensorData::from_numbers(onnx::ElementType::i64, dims, numbers);
  };
  NoiseFloor floor;
  floor.add(tensor({}), tensor({}), tensor({9, 45}));
  floor.add(tensor({}), tensor({}), tensor({9}));
  EXPECT_TRUE(compare(tensor({}), tensor({9, 45}), {}, &floor).equal());
  EXPECT_TRUE(compare(tensor({}), tensor({9, 20}), {}, &floor).equal()) << "one that no draw moved may be chance";
  EXPECT_FALSE(compare(tensor({}), tensor({13, 41}), {}, &floor).equal());
}

/// Two columns tie for each maximum. Either index is correct, and the third-best is not.
TEST(NoiseFloor, TheThirdBestIsNoneOfTwoThatAreTied) {
  const auto index_of_largest = [](const std::string& first, const std::string& second) {
    return text_model(
        {{"x", onnx::ElementType::f32, {8, 1}}},
        "size = Abs(x)\nthird = Constant<value=float(3.0)>()\ninverse = Constant<value=float(0.33333334)>()\n"
        "a = Div(size, third)\nb = Mul(size, inverse)\nhalf = Constant<value=float(0.5)>()\n"
        "c = Mul(a, half)\nlowest = Neg(size)\nall = Concat<axis=1>(" +
            first + ", " + second + ")\ny = ArgMax<axis=1>(all)",
        {"y"});
  };
  const onnx::Model reference = index_of_largest("a, b", "c, lowest");
  const VerifyReport tied = verify_models(runtime::default_engine(), reference, index_of_largest("b, a", "c, lowest"));
  EXPECT_TRUE(tied.equal()) << difference_text(tied.outputs.at(0).worst);
  const onnx::Model third_best = index_of_largest("lowest, lowest", "c, lowest");
  const VerifyReport report = verify_models(runtime::default_engine(), reference, third_best);
  EXPECT_FALSE(report.equal());
  EXPECT_THAT(difference_text(report.outputs.at(0).worst), HasSubstr("8 of 8 elements differ, first at [0, 0]: "));
  EXPECT_THAT(difference_text(report.outputs.at(0).worst), Not(HasSubstr("relative")));
  ASSERT_TRUE(report.outputs.at(0).floor.has_value());
  EXPECT_THAT(report.outputs.at(0).floor->text, HasSubstr("become other integers"));
  EXPECT_FALSE(compare_layers(runtime::default_engine(), reference, third_best).equal());
}

TEST(NoiseFloor, AnIntegerThatADrawGaveIsExpected) {
  const auto tensor = [](const std::vector<double>& numbers) {
    return onnx::TensorData::from_numbers(onnx::ElementType::i64, {static_cast<std::int64_t>(numbers.size())}, numbers);
  };
  NoiseFloor tied;
  for (const double drawn : {7, 7, 5, 7, 5, 7}) tied.add(tensor({5}), tensor({5}), tensor({drawn}));
  EXPECT_TRUE(compare(tensor({5}), tensor({7}), {}, &tied).equal());
  EXPECT_FALSE(compare(tensor({5}), tensor({6}), {}, &tied).equal());
  // Where each draw yields another integer, so may the candidate.
  NoiseFloor chaotic;
  for (const double drawn : {7, 12, 3, 9, 100, 41}) chaotic.add(tensor({5}), tensor({5}), tensor({drawn}));
  EXPECT_TRUE(compare(tensor({5}), tensor({6}), {}, &chaotic).equal());
}

/// Returns a noise floor of draws with `elements` elements each, computed by `number(draw, element)`; draw 0 is the
/// reference.
template <class Number>
NoiseFloor drawn(onnx::ElementType type, std::int64_t elements, const Number& number) {
  const auto tensor = [&](std::size_t draw) {
    std::vector<double> numbers;
    for (std::int64_t i = 0; i < elements; ++i) numbers.push_back(number(draw, i));
    return onnx::TensorData::from_numbers(type, {elements}, numbers);
  };
  NoiseFloor floor;
  const onnx::TensorData reference = tensor(0);
  for (std::size_t draw = 1; draw <= NoisyModel::draws; ++draw) floor.add(reference, reference, tensor(draw));
  return floor;
}

/// Nearly every candidate would be within these noise floors.
TEST(NoiseFloor, WhereRoundingSettlesNothingNothingIsCompared) {
  constexpr std::int64_t elements = 64;
  std::mt19937_64 random(0);
  const auto any_of_first = [&](std::uint64_t count) {
    return [&random, count](std::size_t, std::int64_t) { return static_cast<double>(random() % count); };
  };
  using onnx::ElementType;
  for (const std::uint64_t count : {2, 3, 4, 5, 7, 64, 1000}) {
    EXPECT_TRUE(drawn(ElementType::i64, elements, any_of_first(count)).allows_anything()) << count;
  }
  EXPECT_TRUE(drawn(ElementType::boolean, elements, any_of_first(2)).allows_anything());
  EXPECT_TRUE(drawn(ElementType::u8, elements, any_of_first(200)).allows_anything());
  EXPECT_TRUE(drawn(ElementType::f32, elements, any_of_first(1000)).allows_anything()) << "no number is negative";
  // Three of ten elements are 1 in each draw, at random positions, so each element takes both values.
  const auto three_of_ten = [&](std::size_t draw, std::int64_t) { return draw != 0 && random() % 10 < 3 ? 1.0 : 0.0; };
  EXPECT_TRUE(drawn(ElementType::boolean, elements, three_of_ten).allows_anything());
}

TEST(NoiseFloor, WhereRoundingSettlesMostItIsCompared) {
  constexpr std::int64_t elements = 64;
  using onnx::ElementType;
  const auto few_move = [](std::size_t draw, std::int64_t i) {
    return static_cast<double>(i % 4 == 0 && draw % 2 == 1 ? i % 2 + 1 : i % 2);
  };
  for (const ElementType type : {ElementType::i64, ElementType::boolean, ElementType::f32}) {
    EXPECT_FALSE(drawn(type, elements, few_move).allows_anything()) << to_string(type);
  }
  // An offset of 100 that varies by 1 is well determined.
  const auto near_hundred = [](std::size_t draw, std::int64_t) { return 100 + static_cast<double>(draw % 2); };
  EXPECT_FALSE(drawn(ElementType::f32, elements, near_hundred).allows_anything());
}

TEST(NoiseFloor, HalfOfASelectionWithoutPartnerShowsNothing) {
  const auto tensor = [](std::int64_t first, std::int64_t size) {
    std::vector<double> numbers(static_cast<std::size_t>(size));
    std::iota(numbers.begin(), numbers.end(), static_cast<double>(first));
    return onnx::TensorData::from_numbers(onnx::ElementType::i64, {size}, numbers);
  };
  NoiseFloor other;
  other.add(tensor(0, 32), tensor(0, 32), tensor(20, 33));
  EXPECT_TRUE(other.allows_anything());
  NoiseFloor one_more;
  one_more.add(tensor(0, 32), tensor(0, 32), tensor(0, 33));
  EXPECT_FALSE(one_more.allows_anything());
}

/// An engine that confirms its own noise floors, as a second engine with the same results does.
class ConfirmedByItself final : public runtime::Engine {
 public:
  explicit ConfirmedByItself(const runtime::Engine& engine) : engine_(engine) {}

  using runtime::Engine::compile;
  [[nodiscard]] std::string_view name() const override { return engine_.name(); }
  [[nodiscard]] const runtime::Engine* second() const override { return &engine_; }
  [[nodiscard]] std::unique_ptr<runtime::CompiledModel> compile(const onnx::Model& model,
                                                                const runtime::CompileOptions& options) const override {
    return engine_.compile(model, options);
  }
  [[nodiscard]] runtime::TensorMap evaluate_constant_graph(const onnx::Model& model) const override {
    return engine_.evaluate_constant_graph(model);
  }

 private:
  const runtime::Engine& engine_;
};

/// Sin of values that f32 cannot distinguish, and nodes that read it.
TEST(NoiseFloor, IntegersThatAreRoundingAndNothingElseAreNotTheSame) {
  const auto network_of = [](const std::string& function, const std::string& end) {
    return text_model({{"x", onnx::ElementType::f32, {64, 16}}},
                      "c = Constant<value=float(1.2e9)>()\nhundred = Constant<value=float(100.0)>()\n"
                      "five = Constant<value_ints=[5]>()\nseven = Constant<value_int=7>()\n"
                      "zero = Constant<value=float(0.0)>()\na = Mul(x, c)\ns = " +
                          function + "(a)\nl = Mul(s, hundred)\n" + end,
                      {"y"});
  };
  for (const std::string end :
       {"y = ArgMax<axis=1>(s)", "t, y = TopK<axis=1>(s, five)", "i = Cast<to=int64>(l)\ny = Mod(i, seven)",
        "y = Cast<to=int64>(l)", "y = Round(l)", "y = Greater(s, zero)", "g = Greater(s, zero)\ny = NonZero(g)"}) {
    const onnx::Model reference = network_of("Sin", end);
    const onnx::Model candidate = network_of("Cos", end);
    // The floor counts as confirmed, as it is by the program's second engine.
    const ConfirmedByItself engine(runtime::default_engine());
    EXPECT_NE(verify_models(engine, reference, candidate).verdict(), Verdict::same) << end;
    EXPECT_NE(compare_layers(engine, reference, candidate).verdict(), Verdict::same) << end;
    const ProofResult proof = prove_region(engine, reference, candidate);
    EXPECT_FALSE(proof.proven) << end << ": " << proof.text;
  }
}

/// OpenVINO may compute an operation on a constant once, and the next node may then overwrite the result in place.
TEST(NoiseFloor, TheSameDrawGivesTheSameBits) {
  const onnx::Model model = network(
      "c = Constant<value=float([1.5, 0.7, -2.3, 0.9, 1.1, 3.7])>()\na = Mul(c, x)\nb = Sub(c, a)\nd = Div(c, b)\n"
      "e = ReduceMean<axes=[2, 3]>(d)\ny = Add(e, c)");
  const runtime::Engine& engine = default_engine();
  runtime::TensorMap inputs = make_inputs(model, {.seed = 1});
  const std::unique_ptr<runtime::CompiledModel> still = engine.compile(model);
  const onnx::TensorData before = still->run(inputs).at("y");
  const NoisyGraph noisy = add_rounding_noise(model, {});
  const std::unique_ptr<runtime::CompiledModel> compiled = engine.compile(noisy.model);
  const auto draw = [&](std::uint64_t number) {
    runtime::TensorMap given = inputs;
    given[noisy.input] = noise_factors(number);
    return compiled->run(given).at("y");
  };
  const onnx::TensorData unmoved = draw(0);
  const onnx::TensorData first = draw(1);
  EXPECT_FALSE(first.same_as(unmoved)) << "the draw has no effect";
  EXPECT_FALSE(first.same_as(draw(2))) << "the draws are the same";
  for (int repeated = 0; repeated < 4; ++repeated) {
    EXPECT_TRUE(draw(1).same_as(first)) << repeated;
    EXPECT_TRUE(draw(0).same_as(unmoved)) << repeated;
  }
  EXPECT_TRUE(compare(before, unmoved, rewrite_tolerance(onnx::ElementType::f32)).equal());
  EXPECT_TRUE(still->run(inputs).at("y").same_as(before));
}

/// Every engine rounds the same f64 number to the same f32 number.
TEST(NoiseFloor, ACastFromF64AddsNoNoise) {
  const onnx::Model model =
      text_model({{"x", onnx::ElementType::f64, {1, channels, 6, 6}}}, "y = Cast<to=1>(x)", {"y"});
  const Scale scale = scale_of(default_engine(), model, 1);
  EXPECT_EQ(scale.floor, 0);
  EXPECT_GT(scale.largest, 0);
}

TEST(NoiseFloor, ASuspectFloorExcusesNothingThatTheSecondEngineDoesNotExcuse) {
  const auto tensor = [](const std::vector<double>& numbers) {
    return onnx::TensorData::from_numbers(onnx::ElementType::f32, {static_cast<std::int64_t>(numbers.size())}, numbers);
  };
  const onnx::TensorData reference = tensor({1, 2, 3, 4});
  const onnx::TensorData candidate = tensor({1, 2, 3, 4.2});
  const Tolerance tolerance = network_tolerance(onnx::ElementType::f32);
  NoiseFloor large(tolerance);
  large.add(reference, reference, tensor({1.1, 2.1, 3.1, 4.1}));
  NoiseFloor small(tolerance);
  small.add(reference, reference, tensor({1, 2, 3, 4.001}));
  EXPECT_TRUE(large.is_suspect());
  EXPECT_FALSE(small.is_suspect());
  const Difference excused = compare(reference, candidate, tolerance, &large);
  ASSERT_TRUE(excused.equal());
  EXPECT_TRUE(needs_confirmation(excused, large));
  EXPECT_TRUE(is_lost_in_noise(excused, large)) << "no engine confirmed it";

  Difference refuted = excused;
  NoiseFloor floor = large;
  confirm(reference, candidate, tolerance, small, "another engine", refuted, floor);
  EXPECT_FALSE(refuted.equal());
  EXPECT_EQ(floor.largest(), small.largest());
  EXPECT_THAT(floor.why_unconfirmed(), HasSubstr("another engine measured this"));

  Difference unmeasured = excused;
  floor = large;
  confirm(reference, candidate, tolerance, NoiseFloor(tolerance), "another engine", unmeasured, floor);
  EXPECT_TRUE(is_lost_in_noise(unmeasured, floor));
  EXPECT_THAT(floor.why_unconfirmed(), HasSubstr("another engine cannot confirm this: it cannot run the reference"));

  Difference confirmed = excused;
  floor = large;
  confirm(reference, candidate, tolerance, large, "another engine", confirmed, floor);
  EXPECT_TRUE(confirmed.equal());
  EXPECT_FALSE(is_lost_in_noise(confirmed, floor));
  EXPECT_EQ(floor.why_unconfirmed(), "");
  EXPECT_THAT(floor.to_string(), HasSubstr("confirmed by another engine"));
}

/// The second engine measures f64 with the noise of f32, which is 5e8 times as large.
TEST(NoiseFloor, TheNoiseOfF32DoesNotConfirmAFloorOfF64) {
  const auto network_of = [](const std::string& end) {
    return text_model({{"x", onnx::ElementType::f64, {64}}},
                      "large = Constant<value=double(3.0e13)>()\noff = Constant<value=double(0.08)>()\n"
                      "a = Add(x, large)\nb = Sub(a, large)\n" +
                          end,
                      {"y"});
  };
  const onnx::Model reference = network_of("y = Identity(b)");
  std::vector<double> numbers(64);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::cos(static_cast<double>(i));
  const runtime::TensorMap inputs{{"x", onnx::TensorData::from_numbers(onnx::ElementType::f64, {64}, numbers)}};
  const ConfirmedByItself engine(default_engine());
  EXPECT_NE(verify_models(engine, reference, network_of("y = Add(b, off)"), {.data = {inputs}}).verdict(),
            Verdict::same);
  EXPECT_NE(compare_layers(engine, reference, network_of("y = Add(b, off)"), {.data = {inputs}}).verdict(),
            Verdict::same);
  EXPECT_EQ(verify_models(engine, reference, network_of("y = Identity(b)"), {.data = {inputs}}).verdict(),
            Verdict::same);
  EXPECT_TRUE(depends_on_f64(*reference.graph().outputs().front()));
  EXPECT_FALSE(depends_on_f64(*network("y = Sin(x)").graph().outputs().front()));

  const auto tensor = [](const std::vector<double>& values) {
    return onnx::TensorData::from_numbers(onnx::ElementType::f64, {static_cast<std::int64_t>(values.size())}, values);
  };
  const onnx::TensorData before = tensor({1, 2, 3, 4});
  const onnx::TensorData candidate = tensor({1, 2, 3, 4.2});
  const Tolerance tolerance = network_tolerance(onnx::ElementType::f64);
  NoiseFloor first(tolerance);
  first.add(before, before, tensor({1, 2, 3, 4.1}));
  NoiseFloor coarser(tolerance);
  coarser.add(before, before, tensor({1, 2, 3, 4e6}));
  Difference difference = compare(before, candidate, tolerance, &first);
  confirm(before, candidate, tolerance, coarser, "another engine", difference, first, true);
  EXPECT_TRUE(is_lost_in_noise(difference, first));
  EXPECT_THAT(first.why_unconfirmed(), HasSubstr("it measures f64 tensors with the rounding of f32"));
}

/// Rounding makes the last element NaN in one draw and moves it by 0.1 in another.
TEST(NoiseFloor, AnElementThatBecomesNaNDoesNotAllowEveryNumber) {
  const auto tensor = [](const std::vector<double>& numbers) {
    return onnx::TensorData::from_numbers(onnx::ElementType::f32, {static_cast<std::int64_t>(numbers.size())}, numbers);
  };
  const onnx::TensorData reference = tensor({1, 2, 3, 4});
  const Tolerance tolerance = network_tolerance(onnx::ElementType::f32);
  for (const double other : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    NoiseFloor measured(tolerance);
    measured.add(reference, reference, tensor({1, 2, 3, other}));
    measured.add(reference, reference, tensor({1, 2, 3, 4.1}));
    measured.set_confirmed_by("another engine");
    const std::optional<NoiseFloor> floor = measured;

    const Difference near = compare(reference, tensor({1, 2, 3, 4.3}), tolerance, &*floor);
    EXPECT_TRUE(near.equal());
    EXPECT_EQ(near.within_noise, 1);
    EXPECT_EQ(near.undecided, 0);
    EXPECT_FALSE(is_lost_in_noise(near, floor));

    const Difference far = compare(reference, tensor({1, 2, 3, 104}), tolerance, &*floor);
    EXPECT_TRUE(far.equal()) << "rounding may explain it";
    EXPECT_EQ(far.undecided, 1);
    EXPECT_TRUE(is_lost_in_noise(far, floor)) << "but nothing shows that the tensors are the same";

    EXPECT_FALSE(compare(reference, tensor({1, 2.1, 3, 4.3}), tolerance, &*floor).equal());
    EXPECT_FALSE(compare(reference, tensor({1, 2, std::nan(""), 4}), tolerance, &*floor).equal());
    EXPECT_FALSE(is_lost_in_noise(compare(reference, reference, tolerance, &*floor), floor));

    NoiseFloor wider(tolerance);
    wider.add(reference, reference, tensor({1, 2, 3, 50}));
    Difference excused = compare(reference, tensor({1, 2, 3, 104}), tolerance, &wider);
    ASSERT_EQ(excused.undecided, 0);
    confirm(reference, tensor({1, 2, 3, 104}), tolerance, measured, "another engine", excused, wider);
    EXPECT_TRUE(is_lost_in_noise(excused, wider)) << "the second engine does not confirm the finite deviation";
  }
}

/// The element is NaN or infinite in the reference or in the candidate.
TEST(NoiseFloor, AnElementThatRoundingMakesNaNIsUndecidedInBothDirections) {
  const auto tensor = [](const std::vector<double>& numbers) {
    return onnx::TensorData::from_numbers(onnx::ElementType::f32, {static_cast<std::int64_t>(numbers.size())}, numbers);
  };
  const Tolerance tolerance = network_tolerance(onnx::ElementType::f32);
  const onnx::TensorData number = tensor({1, 2, 3, 4});
  for (const double kind : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    const onnx::TensorData other = tensor({1, 2, 3, kind});
    for (const auto& [reference, candidate] : {std::pair(&number, &other), std::pair(&other, &number)}) {
      NoiseFloor measured(tolerance);
      measured.add(*reference, *reference, *candidate);
      measured.set_confirmed_by("another engine");
      const std::optional<NoiseFloor> floor = measured;
      const Difference difference = compare(*reference, *candidate, tolerance, &*floor);
      EXPECT_TRUE(difference.equal());
      EXPECT_EQ(difference.undecided, 1);
      EXPECT_EQ(difference.within_noise, 1);
      EXPECT_EQ(difference.nan_disagreements + difference.infinity_disagreements, 0);
      EXPECT_TRUE(is_lost_in_noise(difference, floor)) << "nothing shows that the tensors are the same";
      EXPECT_THAT(difference_text(difference), HasSubstr("no other difference; 1 of 4 elements differ where rounding"));

      NoiseFloor still(tolerance);
      still.add(*reference, *reference, *reference);
      EXPECT_FALSE(compare(*reference, *candidate, tolerance, &still).equal());
    }
    EXPECT_FALSE(compare(number, tensor({1, 2, kind, 4}), tolerance, nullptr).equal());
  }
}

/// Four of 404 elements are square roots of values that are rounding errors and nothing else.
TEST(NoiseFloor, AFaultWhereRoundingMakesNaNIsNotTheSame) {
  const auto network_of = [](const std::string& end) {
    return text_model({{"x", onnx::ElementType::f32, {4}}, {"z", onnx::ElementType::f32, {400}}},
                      "three = Constant<value=float(3.0)>()\nseven = Constant<value=float(7.0)>()\n"
                      "fault = Constant<value=float(100.0)>()\na = Mul(x, three)\nb = Div(a, three)\n"
                      "c = Mul(b, seven)\nd = Div(c, seven)\ne = Sub(d, b)\nr = Sqrt(e)\n" +
                          end + "y = Concat<axis=0>(s, z)",
                      {"y"});
  };
  const onnx::Model reference = network_of("s = Identity(r)\n");
  const ConfirmedByItself engine(runtime::default_engine());
  EXPECT_NE(verify_models(engine, reference, network_of("s = Add(r, fault)\n")).verdict(), Verdict::same);
  EXPECT_EQ(verify_models(engine, reference, network_of("s = Identity(r)\n")).verdict(), Verdict::same);
  // The rounding errors of two elements are positive and of two negative, so the candidate is NaN where the reference
  // is a number, and the reverse.
  const onnx::Model negated = network_of("n = Neg(e)\ns = Sqrt(n)\n");
  runtime::TensorMap inputs = make_inputs(reference, {.seed = 1});
  inputs["x"] = onnx::TensorData::from_numbers(onnx::ElementType::f32, {4}, {0.37, 0.39, 0.09, 0.18});
  EXPECT_NE(verify_models(engine, reference, negated, {.data = {inputs}}).verdict(), Verdict::different);
}

/// An engine's fault appears both in runs with noise and without.
TEST(NoiseFloor, AnotherFormOfTheReferenceIsNoNoise) {
  const auto tensor = [](const std::vector<double>& numbers) {
    return onnx::TensorData::from_numbers(onnx::ElementType::f32, {static_cast<std::int64_t>(numbers.size())}, numbers);
  };
  NoiseFloor floor;
  floor.add(tensor({1, 2, 3}), tensor({10, 20, 30}), tensor({10.5, 20, 30}));
  EXPECT_EQ(floor.largest(), 0.5);
  NoiseFloor sizes;
  sizes.add(tensor({1, 2, 3}), tensor({1, 2}), tensor({1, 2.5}));
  EXPECT_EQ(sizes.runs(), 0U) << "the engine returns other sizes without noise, too";
}

TEST(InputRanges, AreNotThoseOfAnImageWhereAMaskIsAdded) {
  const auto is_found = [](const Shape& shape, const std::string& constant) {
    const onnx::Model model = text_model({{"x", onnx::ElementType::f32, shape}},
                                         "c = Constant<value=float(" + constant + ")>()\ny = Add(x, c)", {"y"});
    return infer_input_ranges(model).contains("x");
  };
  EXPECT_TRUE(is_found({1, 3, 8, 8}, "-100.0"));
  EXPECT_TRUE(is_found({8, 8, 3}, "[-103.9, -116.8, -123.7]"));
  EXPECT_FALSE(is_found({1, 12}, "-100.0"));
  EXPECT_FALSE(is_found({1, 12, 6, 6}, "-100.0"));
  EXPECT_FALSE(is_found({1, 3, 6, 6}, "[-100.0, -100.0, -100.0, -100.0, -100.0, -100.0]"));
}

TEST(InputRanges, AreInferredWhereTheGraphShowsThem) {
  const auto range = [](const std::string& nodes) {
    const InputRanges ranges = infer_input_ranges(network(nodes));
    return ranges.contains("x") ? ranges.at("x").highest : 0;
  };
  EXPECT_EQ(range("c = Constant<value=float(127.5)>()\nt = Transpose<perm=[0, 2, 3, 1]>(x)\ny = Div(t, c)"), 255);
  EXPECT_EQ(range("c = Constant<value=float(0.003921569)>()\ny = Mul(x, c)"), 255);
  EXPECT_EQ(range("c = Constant<value=float([103.9, 116.8, 123.7])>()\ny = Sub(x, c)"), 255);
  EXPECT_EQ(range("f = Flatten(x)\nc = Constant<value=float(255.0)>()\ny = Div(f, c)"), 255);
  EXPECT_EQ(range("s = SpaceToDepth<blocksize=2>(x)\nc = Constant<value=float(255.0)>()\ny = Div(s, c)"), 255);
  EXPECT_EQ(range("y = Cast<to=uint8>(x)"), 255);
  EXPECT_EQ(range("c = Constant<value=float(255.0)>()\ny = Mul(x, c)"), 1);
  EXPECT_EQ(range("c = Constant<value=float(2.0)>()\ny = Div(x, c)"), 0);
  EXPECT_EQ(range("e = Exp(x)\nc = Constant<value=float(255.0)>()\ny = Div(e, c)"), 0);
}

TEST(InputRanges, AreThoseOf8BitsWhereAnInputIsRounded) {
  const auto range = [](const std::string& constants, const std::string& after = "y = DequantizeLinear(q, s, z)") {
    const InputRanges ranges = infer_input_ranges(network(constants + "q = QuantizeLinear(x, s, z)\n" + after));
    return ranges.contains("x") ? std::pair(ranges.at("x").lowest, ranges.at("x").highest) : std::pair(0.0, 0.0);
  };
  EXPECT_EQ(range("s = Constant<value=float(0.5)>()\nz = Constant<value=int8(0)>()\n"), std::pair(-64.0, 63.5));
  EXPECT_EQ(range("s = Constant<value=float(0.5)>()\nz = Constant<value=uint8(10)>()\n"), std::pair(-5.0, 122.5));
  EXPECT_EQ(range("s = Constant<value=float(-0.5)>()\nz = Constant<value=int8(0)>()\n"), std::pair(0.0, 0.0));
  EXPECT_EQ(range("s = Constant<value=float([0.5, 1.0, 2.0])>()\nz = Constant<value=int8([0, 0, 0])>()\n"),
            std::pair(0.0, 0.0));
}

/// The fault is in the second half of an embedding table.
TEST(InputRanges, AnIndexReachesTheWholeTable) {
  const auto lookup = [](const std::string& nodes) {
    return text_model({{"ids", onnx::ElementType::i64, {2, 16}}, {"table", onnx::ElementType::f32, {30000, 4}}},
                      "axis = Constant<value_ints=[1]>()\nmore = Unsqueeze(ids, axis)\n" + nodes, {"y"});
  };
  const onnx::Model candidate = lookup(
      "sizes = Constant<value_ints=[15000, 15000]>()\nfront, back = Split<axis=0>(table, sizes)\n"
      "off = Constant<value=float(0.01)>()\nmoved = Add(back, off)\nrows = Concat<axis=0>(front, moved)\n"
      "y = Gather(rows, more)");
  const onnx::Model reference = lookup("y = Gather(table, more)");
  const InputRanges ranges = infer_input_ranges(reference);
  ASSERT_TRUE(ranges.contains("ids"));
  EXPECT_EQ(ranges.at("ids").highest, 29999);
  EXPECT_THAT(ranges.at("ids").why, HasSubstr("one of 30000 rows"));
  EXPECT_FALSE(verify_models(runtime::default_engine(), reference, candidate, {.ranges = ranges}).equal());
}

TEST(InputRanges, AnIndexOfSingleElementsReachesTheWholeTable) {
  const onnx::Model model =
      text_model({{"ids", onnx::ElementType::i64, {16, 4}}, {"table", onnx::ElementType::f32, {30000, 4}}},
                 "y = GatherElements<axis=0>(table, ids)", {"y"});
  const InputRanges ranges = infer_input_ranges(model);
  ASSERT_TRUE(ranges.contains("ids"));
  EXPECT_EQ(ranges.at("ids").highest, 29999);
}

TEST(InputRanges, OfTwoIndicesThatAreAConstantApartAreValidForBoth) {
  const onnx::Model model =
      text_model({{"ids", onnx::ElementType::i64, {4}}, {"table", onnx::ElementType::f32, {3, 2}}},
                 "first = Gather(table, ids)\none = Constant<value_ints=[1]>()\nnext = Add(ids, one)\n"
                 "second = Gather(table, next)\ny = Add(first, second)",
                 {"y"});
  const InputRanges ranges = infer_input_ranges(model);
  EXPECT_EQ(ranges.at("ids").lowest, 0);
  EXPECT_EQ(ranges.at("ids").highest, 1);
}

TEST(InputRanges, OfAnIndexAreNarrowedWhereTheModelDoesNotRun) {
  const onnx::Model model =
      text_model({{"ids", onnx::ElementType::i64, {4}}, {"table", onnx::ElementType::f32, {3, 2}}},
                 "first = Gather(table, ids)\ntwo = Constant<value_ints=[2]>()\nnext = Mul(ids, two)\n"
                 "second = Gather(table, next)\ny = Add(first, second)",
                 {"y"});
  const InputRanges ranges = infer_input_ranges(model);
  EXPECT_EQ(ranges.at("ids").highest, 2);
  const VerifyReport report = verify_models(runtime::default_engine(), model, model, {.ranges = ranges});
  EXPECT_TRUE(report.equal());
  EXPECT_EQ(report.ranges.at("ids").highest, 1);
}

TEST(InputRanges, AreKeptByTheInputs) {
  const onnx::Model model = network("y = Neg(x)");
  InputOptions options;
  options.ranges.emplace("x", InputRange{.lowest = 3, .highest = 5, .why = {}});
  const auto numbers = make_inputs(model, options).at("x").numbers();
  EXPECT_GE(*std::min_element(numbers->begin(), numbers->end()), 3);
  EXPECT_LE(*std::max_element(numbers->begin(), numbers->end()), 5);
  EXPECT_LT(*std::min_element(numbers->begin(), numbers->end()), 3.2);
}

}  // namespace
}  // namespace graft::verify::noise_floor_test

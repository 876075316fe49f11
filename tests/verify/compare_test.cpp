// Tests the arithmetic of comparisons on values computed by hand.
#include "verify/compare/compare.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/comparison_text.hpp"
#include "tests/support/text_model.hpp"
#include "verify/compare/figures.hpp"
#include "verify/compare/output_figures.hpp"
#include "verify/judge/noise_floor.hpp"

namespace graft::verify::compare_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

onnx::TensorData f32(const std::vector<std::int64_t>& dims, const std::vector<double>& values) {
  return onnx::TensorData::from_numbers(onnx::ElementType::f32, dims, values);
}

TEST(Compare, CountsWhatIsOutside) {
  const Difference difference = compare(f32({2, 3}, {1, 2, 3, 4, 5, 8}), f32({2, 3}, {1, 2, 3.5, 4.25, 5, 4}),
                                        {.relative = 0.1, .absolute = 0, .of_largest = 0});
  EXPECT_EQ(difference.count, 6);
  EXPECT_EQ(difference.mismatched, 2);
  EXPECT_THAT(difference.first_index, ElementsAre(0, 2));
  EXPECT_EQ(difference.first_reference, 3);
  EXPECT_EQ(difference.first_candidate, 3.5);
  EXPECT_EQ(difference.max_absolute, 4);
  EXPECT_EQ(difference.max_relative, 0.5);
  EXPECT_THAT(difference.max_absolute_at, ElementsAre(1, 2));
  EXPECT_THAT(difference.max_relative_at, ElementsAre(1, 2));
  EXPECT_DOUBLE_EQ(difference.excess, 4 / 0.8);
  // 1 + 4 + 10.5 + 17 + 25 + 32 over the norms
  EXPECT_DOUBLE_EQ(*difference.cosine, 89.5 / (std::sqrt(119.0) * std::sqrt(1 + 4 + 12.25 + 18.0625 + 25 + 16)));
  EXPECT_FALSE(difference.equal());
  EXPECT_THAT(difference_text(difference),
              HasSubstr("2 of 6 elements differ, first at [0, 2]: 3 in the reference, 3.5 in the candidate"));
}

/// Types whose values Graft does not decode are compared by their bytes only.
TEST(Compare, TypesWithoutNumbersAreTheSameOrIncomparable) {
  for (const onnx::ElementType type : {onnx::ElementType::f8e5m2, onnx::ElementType::f8e4m3fnuz}) {
    const onnx::TensorData four{type, {4}, onnx::Bytes(std::string("\x01\x02\x03\x04")), nullptr, "", false, ""};
    const onnx::TensorData other{type, {4}, onnx::Bytes(std::string("\x01\x02\x03\x05")), nullptr, "", false, ""};
    EXPECT_TRUE(compare(four, four, {}).equal());
    EXPECT_THAT(compare(four, other, {}).incomparable, HasSubstr("cannot be compared"));
  }
}

TEST(Compare, EachMaximumHasItsElement) {
  const Difference difference = compare(f32({2, 2}, {100, 1, -0.5, 0}), f32({2, 2}, {103, 1, 0.5, 0.25}), {});
  EXPECT_EQ(difference.max_absolute, 3);
  EXPECT_THAT(difference.max_absolute_at, ElementsAre(0, 0));
  EXPECT_EQ(difference.max_relative, 2);
  EXPECT_THAT(difference.max_relative_at, ElementsAre(1, 0));
  EXPECT_THAT(difference_text(difference), HasSubstr("largest difference 3 at [0, 0], relative 2 at [1, 0]"));
  EXPECT_EQ(compare(f32({1}, {1}), f32({1}, {infinity}), {}).worst_absolute(), infinity);
}

TEST(Compare, EachPartOfTheToleranceCounts) {
  const onnx::TensorData reference = f32({2}, {100, 1});
  const onnx::TensorData candidate = f32({2}, {100, 1.5});
  EXPECT_FALSE(compare(reference, candidate, {}).equal());
  EXPECT_FALSE(compare(reference, candidate, {.relative = 0.4, .absolute = 0, .of_largest = 0}).equal());
  EXPECT_TRUE(compare(reference, candidate, {.relative = 0.5, .absolute = 0, .of_largest = 0}).equal());
  EXPECT_FALSE(compare(reference, candidate, {.relative = 0, .absolute = 0.4, .of_largest = 0}).equal());
  EXPECT_TRUE(compare(reference, candidate, {.relative = 0, .absolute = 0.5, .of_largest = 0}).equal());
  EXPECT_FALSE(compare(reference, candidate, {.relative = 0, .absolute = 0, .of_largest = 0.004}).equal());
  EXPECT_TRUE(compare(reference, candidate, {.relative = 0, .absolute = 0, .of_largest = 0.005}).equal());
}

TEST(Compare, TheLargestIsThatOfTheSlice) {
  // Boxes of 640 pixels next to scores, as detectors return them: [1, 2, 16], and [1, 16, 2].
  constexpr std::int64_t count = 16;
  std::vector<double> boxes(count, 640);
  std::vector<double> scores(count, 0.125);
  std::vector<double> rows = boxes;
  rows.insert(rows.end(), scores.begin(), scores.end());
  std::vector<double> wrong = rows;
  for (std::size_t i = count; i < wrong.size(); ++i) wrong[i] *= 1.01;
  const Tolerance by_slice = network_tolerance(onnx::ElementType::f32);
  Tolerance of_all = by_slice;
  of_all.by_slice = false;
  EXPECT_TRUE(compare(f32({1, 2, count}, rows), f32({1, 2, count}, wrong), of_all).equal());
  EXPECT_EQ(compare(f32({1, 2, count}, rows), f32({1, 2, count}, wrong), by_slice).mismatched, count);
  // A slice of 15 elements is too small to be judged by itself.
  std::vector<double> few(rows.begin() + 1, rows.end() - 1);
  std::vector<double> few_wrong(wrong.begin() + 1, wrong.end() - 1);
  EXPECT_TRUE(compare(f32({1, 2, count - 1}, few), f32({1, 2, count - 1}, few_wrong), by_slice).equal());
  // The remainder of an underflow in a slice of zeros.
  std::fill(rows.begin() + count, rows.end(), 0);
  std::vector<double> left = rows;
  std::fill(left.begin() + count, left.end(), 1e-40);
  EXPECT_TRUE(compare(f32({1, 2, count}, rows), f32({1, 2, count}, left), by_slice).equal());
}

TEST(Compare, ASignalToNoiseRatioIsOfAllElementsTogether) {
  const onnx::TensorData reference = f32({2, 2}, {10, 0, 0, 0});
  const onnx::TensorData candidate = f32({2, 2}, {10, 1, 0, 0});  // 100 over 1: 20 dB
  const Difference difference = compare(reference, candidate, {.snr_db = 20});
  EXPECT_TRUE(difference.equal());
  EXPECT_DOUBLE_EQ(*difference.snr_db, 20);
  EXPECT_DOUBLE_EQ(difference.excess, 1);
  const Difference noisy = compare(reference, candidate, {.snr_db = 26});
  EXPECT_FALSE(noisy.equal());
  EXPECT_EQ(noisy.mismatched, 1);
  EXPECT_THAT(noisy.first_index, ElementsAre(0, 1));
  EXPECT_NEAR(noisy.excess, 2, 0.01);  // 6 dB are half of an amplitude
  EXPECT_TRUE(compare(reference, reference, {.snr_db = 100}).equal());
  EXPECT_FALSE(compare(f32({2}, {0, 0}), f32({2}, {0, 1e-9}), {.snr_db = 1}).equal());
  EXPECT_FALSE(compare(f32({2}, {1, 2}), f32({2}, {1, nan}), {.snr_db = -100}).equal());
}

/// The squares of these values exceed double, or are 0 in it.
TEST(Compare, ASignalToNoiseRatioOfVeryLargeAndSmallNumbers) {
  const auto f64 = [](const std::vector<double>& values) {
    return onnx::TensorData::from_numbers(onnx::ElementType::f64, {2}, values);
  };
  for (const double scale : {1e-300, 1e-200, 1.0, 1e200, 1e300}) {
    const onnx::TensorData reference = f64({scale, 2 * scale});
    for (const Tolerance& tolerance : {Tolerance{.snr_db = 20}, Tolerance{.relative = 10, .least_snr_db = 20}}) {
      const Difference difference = compare(reference, f64({2 * scale, 4 * scale}), tolerance);
      EXPECT_FALSE(difference.equal()) << scale;
      EXPECT_EQ(difference.mismatched, 2) << scale;
      EXPECT_NEAR(difference.excess, 10, 1e-9) << scale;
      ASSERT_TRUE(difference.snr_db.has_value()) << scale;
      EXPECT_NEAR(*difference.snr_db, 0, 1e-9) << scale;
      ASSERT_TRUE(difference.cosine.has_value()) << scale;
      EXPECT_NEAR(*difference.cosine, 1, 1e-9) << scale;
      EXPECT_TRUE(compare(reference, reference, tolerance).equal()) << scale;
      const Difference rounding = compare(reference, f64({scale, 2 * scale * (1 + 1e-10)}), tolerance);
      EXPECT_TRUE(rounding.equal()) << scale;
      ASSERT_TRUE(rounding.snr_db.has_value()) << scale;
      EXPECT_NEAR(*rounding.snr_db, 200 + 10 * std::log10(5.0 / 4.0), 1e-3) << scale;
    }
    const OutputFigures figures = figures_of("y", reference, f64({2 * scale, 4 * scale}));
    ASSERT_TRUE(figures.snr_db.has_value()) << scale;
    EXPECT_NEAR(decibels_of(figures), 0, 1e-9) << scale;
    EXPECT_NEAR(*error_figures(reference, f64({2 * scale, 4 * scale})).snr_db, 0, 1e-9) << scale;
  }
}

/// The difference itself exceeds double.
TEST(Compare, ADifferenceThatOverflowsHasNoSignalToNoiseRatio) {
  const auto f64 = [](const std::vector<double>& values) {
    return onnx::TensorData::from_numbers(onnx::ElementType::f64, {2}, values);
  };
  for (const Tolerance& tolerance : {Tolerance{.snr_db = 20}, Tolerance{.relative = 10, .least_snr_db = 20}}) {
    const Difference difference = compare(f64({1e308, 1}), f64({-1e308, 1}), tolerance);
    EXPECT_FALSE(difference.equal());
    EXPECT_EQ(difference.excess, infinity);
    EXPECT_FALSE(difference.snr_db.has_value());
    EXPECT_THAT(difference_text(difference), Not(HasSubstr("nan")));
  }
}

TEST(Compare, ALeastSignalToNoiseRatioIsBesidesTheOthers) {
  const onnx::TensorData reference = f32({2, 2}, {10, 10, 10, 10});
  const onnx::TensorData candidate = f32({2, 2}, {10, 10.2, 9.8, 10});  // 400 over 0.08: 37 dB
  const Tolerance wide{.relative = 0.05};
  EXPECT_TRUE(compare(reference, candidate, wide).equal());
  const auto with = [&](double least_db) { return Tolerance{.relative = wide.relative, .least_snr_db = least_db}; };
  const Difference enough = compare(reference, candidate, with(36.9));
  EXPECT_TRUE(enough.equal());
  EXPECT_TRUE(enough.first_index.empty());
  EXPECT_FALSE(enough.missed_snr_db.has_value());
  const Difference noisy = compare(reference, candidate, with(43));
  EXPECT_EQ(noisy.mismatched, 2);
  EXPECT_THAT(noisy.first_index, ElementsAre(0, 1));
  EXPECT_EQ(noisy.missed_snr_db, 43);
  EXPECT_NEAR(noisy.excess, 2, 0.01);
  EXPECT_THAT(difference_text(noisy), HasSubstr("37.0 dB, and 43 dB is required"));
  EXPECT_FALSE(compare(reference, f32({2, 2}, {10, 11, 10, 10}), with(0)).equal()) << "one element is too far off";
  EXPECT_TRUE(compare(reference, reference, with(200)).equal());
  EXPECT_TRUE(compare(f32({2}, {0, 0}), f32({2}, {0, 0}), with(200)).equal());
}

TEST(Compare, ALeastSignalToNoiseRatioIsNoMoreThanTheNoiseFloorExplains) {
  const onnx::TensorData reference = f32({2, 2}, {10, 10, 10, 10});
  const onnx::TensorData candidate = f32({2, 2}, {10, 10.2, 9.8, 10});
  const Tolerance tolerance{.relative = 0.05, .least_snr_db = 60};
  const auto floor_of = [&](double deviation) {
    NoiseFloor floor(tolerance);
    floor.add(reference, reference, f32({2, 2}, {10, 10 + deviation, 10, 10 + deviation}));
    return floor;
  };
  const NoiseFloor wide = floor_of(0.051);  // four times that of two elements: 37 dB
  const Difference excused = compare(reference, candidate, tolerance, &wide);
  EXPECT_TRUE(excused.equal());
  EXPECT_EQ(excused.within_noise, 2);
  const NoiseFloor narrow = floor_of(0.005);  // 57 dB
  const Difference missed = compare(reference, candidate, tolerance, &narrow);
  EXPECT_EQ(missed.mismatched, 2);
  EXPECT_NEAR(*missed.missed_snr_db, 57, 0.1);
}

TEST(Compare, NaNAndInfinityHaveToAgree) {
  const Tolerance generous{.relative = 1e9, .absolute = 1e9, .of_largest = 1e9};
  EXPECT_TRUE(compare(f32({3}, {nan, infinity, -infinity}), f32({3}, {nan, infinity, -infinity}), {}).equal());
  const Difference difference = compare(f32({6}, {nan, 1, infinity, infinity, 2, nan}),
                                        f32({6}, {1, nan, -infinity, 5, infinity, nan}), generous);
  EXPECT_EQ(difference.mismatched, 5);
  EXPECT_EQ(difference.nan_disagreements, 2);
  EXPECT_EQ(difference.infinity_disagreements, 3);
  EXPECT_EQ(difference.excess, infinity);
  EXPECT_TRUE(std::isnan(difference.worst_absolute()));
  EXPECT_FALSE(difference.cosine.has_value());
}

TEST(Compare, AnInfinityDoesNotWidenTheToleranceOfTheOthers) {
  EXPECT_FALSE(
      compare(f32({2}, {infinity, 1}), f32({2}, {infinity, 2}), {.relative = 0, .absolute = 0, .of_largest = 0.5})
          .equal());
}

TEST(Compare, IntegersAreExactBeyondDouble) {
  const std::int64_t large = (std::int64_t{1} << 53) + 1;
  const Difference difference =
      compare(onnx::TensorData::from_ints({large, 5}), onnx::TensorData::from_ints({large - 1, 5}), {});
  EXPECT_EQ(difference.mismatched, 1);
  EXPECT_EQ(difference.max_absolute, 1);
  EXPECT_TRUE(compare(onnx::TensorData::from_ints({large}), onnx::TensorData::from_ints({large}), {}).equal());
}

TEST(Compare, IntegersArePrintedInFull) {
  const auto tensor = [](onnx::ElementType type, std::int64_t value) {
    onnx::TensorData result = onnx::TensorData::from_ints({value});
    result.type = type;
    return result;
  };
  const auto difference_of = [&](onnx::ElementType type, std::int64_t reference, std::int64_t candidate,
                                 const Tolerance& tolerance = {}) {
    return compare(tensor(type, reference), tensor(type, candidate), tolerance);
  };
  constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();  // the bits of 2^63 in u64
  const Difference two = difference_of(onnx::ElementType::u64, lowest, lowest + 2);
  EXPECT_THAT(difference_text(two),
              HasSubstr("9223372036854775808 in the reference, 9223372036854775810 in the candidate"));
  EXPECT_THAT(difference_text(two), Not(HasSubstr("-")));
  EXPECT_EQ(two.max_absolute, 2);
  EXPECT_EQ(two.first_reference, std::ldexp(1.0, 63));
  EXPECT_EQ(difference_of(onnx::ElementType::u64, lowest, std::numeric_limits<std::int64_t>::max()).max_absolute, 1);
  EXPECT_EQ(difference_of(onnx::ElementType::u64, -1, 0).max_absolute, std::ldexp(1.0, 64));
  EXPECT_EQ(difference_of(onnx::ElementType::i64, lowest, 0).max_absolute, std::ldexp(1.0, 63));
  EXPECT_THAT(difference_text(difference_of(onnx::ElementType::i64, lowest + 1, lowest)),
              HasSubstr("-9223372036854775807 in the reference, -9223372036854775808 in the candidate"));
  constexpr std::int64_t large = (std::int64_t{1} << 53) + 1;
  EXPECT_THAT(difference_text(difference_of(onnx::ElementType::i64, large, 0, {.absolute = 1})),
              HasSubstr("9007199254740993 in the reference, 0 in the candidate"));
}

onnx::TensorData u8(const std::vector<double>& values) {
  return onnx::TensorData::from_numbers(onnx::ElementType::u8, {static_cast<std::int64_t>(values.size())}, values);
}

/// Rounding changes single elements in either direction, and not all of them by one step.
TEST(Compare, AWholeStepInOneDirectionIsNoRounding) {
  constexpr std::size_t count = 40;
  const Tolerance step = network_tolerance(onnx::ElementType::u8, true);
  const auto moved = [&](std::size_t up, std::size_t down, std::size_t saturated = 0) {
    std::vector<double> values(count, 100);
    for (std::size_t i = 0; i < up; ++i) values.at(i) = 101;
    for (std::size_t i = up; i < up + down; ++i) values.at(i) = 99;
    for (std::size_t i = count - saturated; i < count; ++i) values.at(i) = 255;
    return u8(values);
  };
  const Difference difference = compare(moved(0, 0), moved(count, 0), step);
  EXPECT_EQ(difference.mismatched, 40);
  EXPECT_EQ(difference.excess, 2);
  EXPECT_THAT(difference.first_index, ElementsAre(0));
  EXPECT_THAT(difference_text(difference), HasSubstr("most elements are off in the same direction"));
  EXPECT_FALSE(compare(moved(0, 0), moved(0, count), step).equal());
  EXPECT_FALSE(compare(moved(0, 0), moved(30, 5), step).equal());
  EXPECT_TRUE(compare(moved(0, 0), moved(20, 0), step).equal()) << "half of the elements";
  EXPECT_TRUE(compare(moved(0, 0), moved(20, 20), step).equal()) << "both directions";
  EXPECT_FALSE(compare(moved(0, 0, 20), moved(20, 0, 20), step).equal()) << "the others are saturated";
  EXPECT_TRUE(compare(u8(std::vector<double>(15, 7)), u8(std::vector<double>(15, 8)), step).equal()) << "few elements";
  EXPECT_TRUE(compare(moved(0, 0), moved(count, 0), {.absolute = 1}).equal()) << "a given tolerance";

  NoiseFloor ties;  // a draw raises a quarter of the elements and lowers none
  ties.add(moved(0, 0), moved(0, 0), moved(10, 0));
  EXPECT_EQ(ties.most_shifted(), 10);
  const Difference excused = compare(moved(0, 0), moved(count, 0), step, &ties);
  EXPECT_TRUE(excused.equal());
  EXPECT_EQ(excused.within_noise, 40);
  NoiseFloor both;
  both.add(moved(0, 0), moved(0, 0), moved(10, 10));
  EXPECT_FALSE(compare(moved(0, 0), moved(count, 0), step, &both).equal());
}

TEST(Compare, WorksAcrossPieces) {
  constexpr std::int64_t count = (1 << 17) + 3;
  std::vector<double> values(count, 1);
  for (const onnx::ElementType type : {onnx::ElementType::f32, onnx::ElementType::f16, onnx::ElementType::i8}) {
    SCOPED_TRACE(to_string(type));
    auto changed = values;
    changed[count - 1] = 3;
    changed[(1 << 16) + 1] = -1;
    const Difference difference = compare(onnx::TensorData::from_numbers(type, {count}, values),
                                          onnx::TensorData::from_numbers(type, {count}, changed), {});
    EXPECT_EQ(difference.count, count);
    EXPECT_EQ(difference.mismatched, 2);
    EXPECT_THAT(difference.first_index, ElementsAre((1 << 16) + 1));
  }
}

TEST(Compare, OtherDimensionsAreNotCompared) {
  const Difference difference = compare(f32({2}, {1, 2}), f32({2, 1}, {1, 2}), {});
  EXPECT_FALSE(difference.equal());
  EXPECT_EQ(difference_text(difference), "dimensions differ: [2] in the reference, [2, 1] in the candidate");
}

TEST(Compare, TextHasToBeTheSame) {
  EXPECT_TRUE(compare(onnx::TensorData::from_strings({"a"}), onnx::TensorData::from_strings({"a"}), {}).equal());
  EXPECT_FALSE(compare(onnx::TensorData::from_strings({"a"}), onnx::TensorData::from_strings({"b"}), {}).equal());
}

TEST(Compare, NothingAgreesWithNothing) { EXPECT_TRUE(compare(f32({0, 3}, {}), f32({0, 3}, {}), {}).equal()); }

TEST(Tolerance, FollowsTheType) {
  EXPECT_EQ(rewrite_tolerance(onnx::ElementType::f32).relative, 64 * std::numeric_limits<float>::epsilon());
  EXPECT_EQ(rewrite_tolerance(onnx::ElementType::f16).relative, 2.0 / 1024);
  EXPECT_EQ(rewrite_tolerance(onnx::ElementType::i8).absolute, 0);
  EXPECT_EQ(rewrite_tolerance(onnx::ElementType::i8, true).absolute, 1);
  EXPECT_EQ(network_tolerance(onnx::ElementType::u8, true).absolute, 1);
  EXPECT_EQ(network_tolerance(onnx::ElementType::i64, true).absolute, 0);
  EXPECT_EQ(rewrite_tolerance(onnx::ElementType::i64).absolute, 0);
  EXPECT_EQ(rewrite_tolerance(onnx::ElementType::i64).relative, 0);
}

TEST(NarrowTypes, AreThoseOfWhatAValueIsComputedFrom) {
  const onnx::Model model = test::text_model({{"x", onnx::ElementType::f32, {4}}},
                                             "wide = Exp(x)\n"
                                             "h = Cast<to=float16>(wide)\n"
                                             "a = Neg(h)\n"
                                             "b = Cast<to=bfloat16>(x)\n"
                                             "a32 = Cast<to=float>(a)\n"
                                             "b32 = Cast<to=float>(b)\n"
                                             "y = Add(a32, b32)\n"
                                             "n = ArgMax(a32)",
                                             {"wide", "y", "n"});
  const NarrowTypes narrow = narrow_types(model);
  const auto type_of = [&](const char* name, onnx::ElementType own = onnx::ElementType::f32) {
    return rounding_type(narrow, *model.graph().find_local(name), own);
  };
  EXPECT_EQ(type_of("wide"), onnx::ElementType::f32);
  EXPECT_EQ(type_of("a32"), onnx::ElementType::f16);
  EXPECT_EQ(type_of("y"), onnx::ElementType::bf16);
  EXPECT_EQ(type_of("a", onnx::ElementType::f16), onnx::ElementType::f16);
  EXPECT_EQ(type_of("n", onnx::ElementType::i64), onnx::ElementType::i64);
}

/// A tensor of rounded integers still counts as quantized after a movement, so a tie may be off by one there too.
TEST(IsQuantized, AfterMovements) {
  const auto after = [](const std::string& movement) {
    const onnx::Model model = test::text_model(
        {{"x", onnx::ElementType::f32, {1, 4, 2, 2}}},
        "s = Constant<value=float(0.1)>()\nz = Constant<value=int8(0)>()\nq = QuantizeLinear(x, s, z)\ny = " + movement,
        {"y"});
    return is_quantized(*model.graph().find_local("y"));
  };
  EXPECT_TRUE(after("Transpose(q)"));
  EXPECT_TRUE(after("DepthToSpace<blocksize=2>(q)"));
  EXPECT_TRUE(after("Concat<axis=1>(q, q)"));
  EXPECT_FALSE(after("DequantizeLinear(q, s, z)"));
}

}  // namespace
}  // namespace graft::verify::compare_test

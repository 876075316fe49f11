// Tests histograms and the four threshold methods against direct implementations of their definitions.
#include "quant/calibrate/histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "quant/calibrate/thresholds.hpp"

namespace graft::quant::histogram_test {
namespace {

std::vector<float> normal_numbers(std::size_t count, std::uint32_t seed, float scale = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> values(count);
  std::generate(values.begin(), values.end(), [&] { return normal(random); });
  return values;
}

Histogram histogram_of(const std::vector<float>& values) {
  Histogram histogram;
  histogram.add(values);
  return histogram;
}

TEST(Histogram, EachNumberIsInTheBinOfItsSize) {
  for (const std::size_t count : {5U, 5000U, 100000U}) {
    const std::vector<float> values = normal_numbers(count, 1, 3);
    const Histogram histogram = histogram_of(values);
    std::vector<std::uint64_t> expected(Histogram::bin_count);
    for (const float value : values) ++expected[static_cast<std::size_t>(std::abs(double{value}) / histogram.width())];
    EXPECT_EQ(histogram.bins(), expected);
    const auto [lowest, highest] = std::minmax_element(values.begin(), values.end());
    EXPECT_EQ(histogram.figures().lowest, std::min(*lowest, 0.F));
    EXPECT_EQ(histogram.figures().highest, std::max(*highest, 0.F));
    EXPECT_GT(histogram.used_bins(), Histogram::bin_count / 2);
    EXPECT_EQ(histogram.counted(), count);
  }
}

TEST(Histogram, PartsAddUpToTheWhole) {
  std::vector<float> values = normal_numbers(50000, 4);
  values[3] = 0;
  values[40000] = std::numeric_limits<float>::infinity();
  values[45000] = 3e5F;
  values[10] = std::numeric_limits<float>::quiet_NaN();
  const Histogram whole = histogram_of(values);
  // Ranges of all sizes are merged in order, then in reverse order, so that a wide range absorbs narrow ones.
  for (const bool backwards : {false, true}) {
    Histogram sum;
    constexpr std::size_t parts = 5;
    for (std::size_t part = 0; part < parts; ++part) {
      const std::size_t at = (backwards ? parts - 1 - part : part) * (values.size() / parts);
      const auto begin = values.begin() + static_cast<std::ptrdiff_t>(at);
      sum.add(histogram_of({begin, begin + static_cast<std::ptrdiff_t>(values.size() / parts)}));
    }
    EXPECT_EQ(sum, whole);
  }
}

TEST(Histogram, DependsOnTheNumbersAlone) {
  std::vector<float> values = normal_numbers(200001, 2);
  for (std::size_t i = 0; i < values.size(); i += 3) values[i] = 0;
  values[77777] = -1e6F;
  const Histogram whole = histogram_of(values);
  std::mt19937 random(3);
  for (int round = 0; round < 5; ++round) {
    std::shuffle(values.begin(), values.end(), random);
    Histogram pieces;
    for (std::size_t begin = 0; begin < values.size();) {
      const std::size_t size = std::min<std::size_t>(values.size() - begin, random() % 50000);
      pieces.add(std::span(values).subspan(begin, size));
      begin += size;
    }
    EXPECT_EQ(pieces, whole);
  }
}

TEST(Histogram, ZerosAndWhatIsNotFiniteAreCountedApart) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const Histogram histogram = histogram_of({0, -0.F, 1, -infinity, infinity, std::nanf(""), 0.25F, 0});
  EXPECT_EQ(histogram.figures().zeros, 3U);
  EXPECT_EQ(histogram.figures().nan, 1U);
  EXPECT_EQ(histogram.figures().infinite, 2U);
  EXPECT_EQ(histogram.counted(), 2U);
  EXPECT_EQ(histogram.largest(), 1.F);
  EXPECT_EQ(histogram_of({}).largest(), 0.F);
  EXPECT_EQ(histogram_of({std::numeric_limits<float>::max()}).counted(), 1U);
  EXPECT_EQ(histogram_of({std::numeric_limits<float>::denorm_min()}).counted(), 1U);
}

double threshold(const std::vector<float>& values, ThresholdMethod method, double percentile = 99.99) {
  return threshold_of(histogram_of(values), {.method = method, .percentile = percentile});
}

/// Two fifths of the elements have the same value: by entropy alone, the threshold would lie right after it, far below
/// the other elements.
TEST(Thresholds, EntropyDoesNotFallForASpike) {
  std::vector<float> values = normal_numbers(100000, 6, 1);
  std::fill_n(values.begin(), 40000, -0.04F);
  const Histogram histogram = histogram_of(values);
  const double found = threshold_of(histogram, {.method = ThresholdMethod::entropy});
  EXPECT_GT(found, 2.5);
  EXPECT_LT(found, 5);
}

TEST(Thresholds, MinmaxAndPercentile) {
  std::vector<float> even(10000);
  for (std::size_t i = 0; i < even.size(); ++i) even[i] = -static_cast<float>(i + 1) / 10000;
  EXPECT_EQ(threshold(even, ThresholdMethod::minmax), 1);
  EXPECT_NEAR(threshold(even, ThresholdMethod::percentile, 99), 0.99, 2.5e-4);
  EXPECT_NEAR(threshold(even, ThresholdMethod::percentile, 50), 0.5, 2.5e-4);
  EXPECT_EQ(threshold(even, ThresholdMethod::percentile, 100), 1);
  for (const auto method :
       {ThresholdMethod::entropy, ThresholdMethod::minmax, ThresholdMethod::percentile, ThresholdMethod::mse}) {
    EXPECT_EQ(threshold({0, 0, 0}, method), 0);
    EXPECT_EQ(threshold({0, 0.5F}, method), 0.5) << to_string(method);
    EXPECT_EQ(report::find_threshold_method(to_string(method)), method);
  }
  EXPECT_EQ(report::find_threshold_method("kl"), std::nullopt);
}

/// Returns the squared rounding error of the values.
double rounding_error(const std::vector<float>& values, double threshold) {
  const double scale = threshold / 127;
  double sum = 0;
  for (const float value : values) {
    const double error = value - std::clamp(std::nearbyint(value / scale), -127., 127.) * scale;
    sum += error * error;
  }
  return sum;
}

TEST(Thresholds, MseIsTheLeastErrorOfTheNumbersThemselves) {
  std::vector<float> values = normal_numbers(20000, 4);
  values[0] = 12;
  const double found = threshold(values, ThresholdMethod::mse);
  EXPECT_LT(found, 12);
  const double least = rounding_error(values, found);
  for (int i = 10; i <= 120; ++i) EXPECT_GT(rounding_error(values, i / 10.), least * 0.99) << i;
}

/// Returns the Kullback-Leibler divergence of two histograms, which are normalized to a sum of 1.
double kullback_leibler(std::vector<double> p, std::vector<double> q) {
  const double p_sum = std::accumulate(p.begin(), p.end(), 0.);
  const double q_sum = std::accumulate(q.begin(), q.end(), 0.);
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (p[i] == 0) continue;
    if (q[i] == 0) return std::numeric_limits<double>::infinity();
    sum += p[i] / p_sum * std::log(p[i] / p_sum / (q[i] / q_sum));
  }
  return sum;
}

/// Returns the threshold by TensorRT's published algorithm, step by step.
double entropy_threshold(const Histogram& histogram) {
  const std::size_t used = histogram.used_bins();
  const std::size_t together = (used + 2047) / 2048;
  std::vector<double> bins((used + together - 1) / together);
  for (std::size_t i = 0; i < used; ++i) bins[i / together] += static_cast<double>(histogram.bins()[i]);
  std::size_t best = bins.size();
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t kept = 128; kept <= bins.size(); ++kept) {
    std::vector<double> p(bins.begin(), bins.begin() + static_cast<std::ptrdiff_t>(kept));
    const std::vector<double> inside = p;
    for (std::size_t i = kept; i < bins.size(); ++i) p[kept - 1] += bins[i];
    std::vector<double> q(kept);
    for (std::size_t level = 0; level < 128; ++level) {
      const std::size_t begin = level * kept / 128;
      const std::size_t end = (level + 1) * kept / 128;
      double sum = 0;
      double filled = 0;
      for (std::size_t i = begin; i < end; ++i) sum += inside[i];
      for (std::size_t i = begin; i < end; ++i) filled += p[i] > 0 ? 1 : 0;
      for (std::size_t i = begin; i < end; ++i) q[i] = p[i] > 0 ? sum / filled : 0;
    }
    const double divergence = kullback_leibler(p, q);
    if (divergence < least) {
      least = divergence;
      best = kept;
    }
  }
  return std::min((static_cast<double>(best) - 0.5) * histogram.width() * static_cast<double>(together),
                  double{histogram.largest()});
}

TEST(Thresholds, EntropyIsThePublishedAlgorithm) {
  for (std::uint32_t seed = 0; seed < 4; ++seed) {
    std::vector<float> values = normal_numbers(30000, seed);
    if (seed % 2 == 1) {
      for (float& value : values) value = std::max(value, 0.F);
    }
    if (seed >= 2) values[5] = 40;
    const Histogram histogram = histogram_of(values);
    const double found = threshold_of(histogram, {.method = ThresholdMethod::entropy});
    EXPECT_NEAR(found, entropy_threshold(histogram), 1e-12) << seed;
    EXPECT_GT(found, 2.5) << seed;
    EXPECT_LT(found, 10) << seed;
  }
}

/// Four of a thousand elements form a tail, as in an activation of a text recognizer: entropy alone cuts it off.
TEST(Thresholds, EntropyKeepsATailThatMatters) {
  std::vector<float> values = normal_numbers(1000000, 6, 0.1F);
  const std::vector<float> tail = normal_numbers(4000, 7, 2);
  values.insert(values.end(), tail.begin(), tail.end());
  std::fill_n(values.begin(), 200000, -0.03F);
  const Histogram histogram = histogram_of(values);
  EXPECT_LT(entropy_threshold(histogram), 1);
  const double found = threshold_of(histogram, {.method = ThresholdMethod::entropy});
  EXPECT_GT(found, 2);
  EXPECT_LT(found, 8);
}

/// Nearly all elements are zeros, and none of the others belong to a tail.
TEST(Thresholds, EntropyLooksAtWhatIsNotZero) {
  std::vector<float> values(2000000);
  std::fill_n(values.begin(), 100, 1.F);
  values.back() = 1e-5F;
  EXPECT_NEAR(threshold(values, ThresholdMethod::entropy), 1, 1e-3);
}

}  // namespace
}  // namespace graft::quant::histogram_test

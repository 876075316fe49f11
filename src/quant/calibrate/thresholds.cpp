// Computes thresholds with four methods, each from the bins of a histogram alone.
#include "quant/calibrate/thresholds.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "graft/error.hpp"

namespace graft::quant {
namespace {

/// Returns the absolute value below which `percent` percent of the values lie, rounded up to the end of a bin. `zeros`
/// is the number of zeros to include.
double percentile(const Histogram& histogram, double percent, std::uint64_t zeros) {
  constexpr double whole = 100;
  const double all = static_cast<double>(histogram.counted()) + static_cast<double>(zeros);
  auto within = static_cast<double>(zeros);
  const std::size_t used = histogram.used_bins();
  for (std::size_t i = 0; i < used; ++i) {
    within += static_cast<double>(histogram.bins()[i]);
    if (within >= all * percent / whole) return static_cast<double>(i + 1) * histogram.width();
  }
  return histogram.largest();
}

/// Returns the sum of the squared rounding errors of the first `used` bins if the type saturates at `threshold`. Each
/// value counts as the middle of its bin.
double squared_error(const Histogram& histogram, std::size_t used, double threshold, EightBits type) {
  constexpr double middle = 0.5;
  const double scale = threshold / largest_of(type);
  double sum = 0;
  for (std::size_t i = 0; i < used; ++i) {
    if (histogram.bins()[i] == 0) continue;
    const double value = (static_cast<double>(i) + middle) * histogram.width();
    const double error = value - round_to(type, value / scale) * scale;
    sum += error * error * static_cast<double>(histogram.bins()[i]);
  }
  return sum;
}

double least_squared_error(const Histogram& histogram, EightBits type) {
  constexpr int candidates = 256;
  const std::size_t used = histogram.used_bins();
  double best = histogram.largest();
  double least = std::numeric_limits<double>::infinity();
  // Starts with the largest threshold, so that among equal errors the threshold that saturates least is chosen.
  for (int i = candidates; i > 0; --i) {
    const double threshold = static_cast<double>(histogram.largest()) * i / candidates;
    const double error = squared_error(histogram, used, threshold, type);
    if (error < least) {
      least = error;
      best = threshold;
    }
  }
  return best;
}

/// Prefix sums over the bins of a histogram: element i of each list is a sum over the first i bins.
struct PrefixSums {
  std::vector<double> counts;   ///< The sums of the counts c.
  std::vector<double> entropy;  ///< The sums of c log c.
  std::vector<double> filled;   ///< The sums of 1 for each count that is not 0.

  explicit PrefixSums(const std::vector<double>& bins)
      : counts(bins.size() + 1), entropy(bins.size() + 1), filled(bins.size() + 1) {
    for (std::size_t i = 0; i < bins.size(); ++i) {
      counts[i + 1] = counts[i] + bins[i];
      entropy[i + 1] = entropy[i] + (bins[i] > 0 ? bins[i] * std::log(bins[i]) : 0);
      filled[i + 1] = filled[i] + (bins[i] > 0 ? 1 : 0);
    }
  }
};

/// Returns the Kullback-Leibler divergence of two distributions. P are the first `kept` bins, the last of which also
/// contains all larger values. Q are the same bins quantized to `levels` levels, where each level is spread evenly
/// over its non-empty bins. The divergence is a sum over bins of P log(P / Q), with P and Q divided by their sums. Q is
/// constant within a level, so the sums are differences of prefix sums.
double divergence(const std::vector<double>& bins, const PrefixSums& sums, std::size_t kept, std::size_t levels) {
  const double all = sums.counts.back();
  const double beyond = all - sums.counts[kept];
  const double last = bins[kept - 1];
  double p_log_p = sums.entropy[kept - 1];
  if (last + beyond > 0) p_log_p += (last + beyond) * std::log(last + beyond);
  double p_log_q = 0;
  for (std::size_t level = 0; level < levels; ++level) {
    const std::size_t begin = level * kept / levels;
    const std::size_t end = (level + 1) * kept / levels;
    const bool is_last = level + 1 == levels;
    const double within = sums.counts[end] - sums.counts[begin];
    const double p = within + (is_last ? beyond : 0);
    if (p == 0) continue;
    // The values beyond the threshold are counted in the last bin.
    const double filled = sums.filled[end] - sums.filled[begin] + (is_last && last == 0 && beyond > 0 ? 1 : 0);
    if (within == 0) return std::numeric_limits<double>::infinity();
    p_log_q += p * std::log(within / filled / sums.counts[kept]);
  }
  return (p_log_p - p_log_q) / all - std::log(all);
}

/// Returns the threshold at which the quantized distribution has the smallest Kullback-Leibler divergence from the
/// original one (S. Migacz, 8-bit inference with TensorRT, GTC 2017). Zeros are ignored: int8 represents them exactly,
/// and the zeros after a ReLU would outweigh all other numbers.
double least_divergence(const Histogram& histogram) {
  constexpr std::size_t most_bins = 2048;
  constexpr std::size_t levels = 128;
  constexpr double middle = 0.5;
  const std::size_t used = histogram.used_bins();
  const std::size_t together = (used + most_bins - 1) / most_bins;
  std::vector<double> bins((used + together - 1) / together);
  for (std::size_t i = 0; i < used; ++i) bins[i / together] += static_cast<double>(histogram.bins()[i]);
  const PrefixSums sums(bins);
  std::size_t best = bins.size();
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t kept = levels; kept <= bins.size(); ++kept) {
    const double found = divergence(bins, sums, kept, levels);
    if (found < least) {
      least = found;
      best = kept;
    }
  }
  return (static_cast<double>(best) - middle) * histogram.width() * static_cast<double>(together);
}

/// Returns the threshold of least_divergence(), or the percentile if that threshold loses more than 6 dB compared with
/// it, measured over the values below the percentile without zeros. A spike or a long tail can pull the threshold far
/// below the values that matter: with the divergence alone, a text recognition network had 39 % of its signs right
/// instead of 94 % (bench/quantize: recognition), and one of its tensors had a signal-to-noise ratio of 5 dB.
double by_entropy(const Histogram& histogram) {
  constexpr double most_error = 4;
  const auto largest = static_cast<double>(histogram.largest());
  const double threshold = std::min(least_divergence(histogram), largest);
  const double end = percentile(histogram, ThresholdOptions{}.percentile, 0);
  const auto kept = std::min(histogram.used_bins(), static_cast<std::size_t>(std::ceil(end / histogram.width())));
  const double fair = std::min(end, largest);
  const double error = squared_error(histogram, kept, threshold, EightBits::int8);
  return error <= most_error * squared_error(histogram, kept, fair, EightBits::int8) ? threshold : fair;
}

}  // namespace

ThresholdMethod usual_method(EightBits type) {
  return type == EightBits::int8 ? ThresholdMethod::percentile : ThresholdMethod::minmax;
}

double threshold_of(const Histogram& histogram, const ThresholdOptions& options, EightBits type) {
  const double largest = histogram.largest();
  if (largest == 0) return 0;
  switch (options.method) {
    case ThresholdMethod::entropy:
      if (type != EightBits::int8) throw Error(Error::Kind::internal, "threshold_of: entropy counts steps of int8");
      return by_entropy(histogram);
    case ThresholdMethod::minmax: return largest;
    case ThresholdMethod::percentile:
      return std::min(percentile(histogram, options.percentile, histogram.figures().zeros), largest);
    case ThresholdMethod::mse: return least_squared_error(histogram, type);
  }
  return largest;
}

float scale_of(double threshold, EightBits type) { return static_cast<float>(threshold / largest_of(type)); }

}  // namespace graft::quant

// From what was counted to where int8 and f8 saturate.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "quant/eight_bits.hpp"
#include "quant/histogram.hpp"

namespace graft::quant {

enum class ThresholdMethod : std::uint8_t {
  /// The least Kullback-Leibler divergence, as TensorRT's entropy calibrator: 2048 bins, 128 levels. Where that costs
  /// four times the squared error of the percentile 99.99, over the numbers which that keeps, the percentile decides:
  /// it fell for a few numbers that come again and again (what a hard swish makes of large negative ones) or for a
  /// tail.
  entropy,
  minmax,      ///< The largest absolute value.
  percentile,  ///< So many per cent of the numbers lie within.
  mse,         ///< The least mean squared error of rounding and saturating.
};
[[nodiscard]] std::string_view to_string(ThresholdMethod method);
[[nodiscard]] std::optional<ThresholdMethod> parse_threshold_method(std::string_view text);

/// What is taken where nothing is asked for: percentile, and minmax in f8. Its steps are finer where numbers are small,
/// so that a wider range costs next to nothing.
[[nodiscard]] ThresholdMethod usual_method(EightBits type);

struct ThresholdOptions {
  ThresholdMethod method = ThresholdMethod::percentile;
  double percentile = 99.99;  ///< Above 0, at most 100.
};

/// The absolute value at which it saturates, at most the largest that was seen; 0 where only zeros were. Entropy is of
/// int8: throws Error (internal) for f8.
[[nodiscard]] double threshold_of(const Histogram& histogram, const ThresholdOptions& options,
                                  EightBits type = EightBits::int8);

/// What 1 is worth.
[[nodiscard]] float scale_of(double threshold, EightBits type);

}  // namespace graft::quant

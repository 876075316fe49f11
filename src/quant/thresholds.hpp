// From what was counted to where int8 saturates.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

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

struct ThresholdOptions {
  ThresholdMethod method = ThresholdMethod::percentile;
  double percentile = 99.99;  ///< Above 0, at most 100.
};

/// The steps of int8 on either side of 0: -128 is not used, as in TensorRT.
inline constexpr double highest_step = 127;

/// The absolute value at which int8 saturates, at most the largest that was seen; 0 where only zeros were.
[[nodiscard]] double threshold_of(const Histogram& histogram, const ThresholdOptions& options);

/// What one step of int8 is worth.
[[nodiscard]] float scale_of(double threshold);

}  // namespace graft::quant

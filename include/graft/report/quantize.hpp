// The choices and the report of `quantize`.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace graft::report {

/// How the threshold of a tensor's int8 range follows from its distribution.
enum class ThresholdMethod : std::uint8_t {
  /// The least Kullback-Leibler divergence, as in TensorRT's entropy calibrator: 2048 bins, 128 levels. If that costs
  /// four times the squared error of the percentile 99.99, over the numbers that the percentile keeps, the percentile
  /// decides: the divergence then follows a few numbers that occur again and again (a hard swish maps large negative
  /// numbers to them) or a tail.
  entropy,
  minmax,      ///< The largest absolute value.
  percentile,  ///< The value within which this percentage of the numbers lies.
  mse,         ///< The least mean squared error of rounding and saturating.
};
inline constexpr std::array all_threshold_methods{ThresholdMethod::entropy, ThresholdMethod::minmax,
                                                  ThresholdMethod::percentile, ThresholdMethod::mse};

/// Returns "entropy", "minmax", "percentile" or "mse".
[[nodiscard]] inline std::string to_string(ThresholdMethod method) {
  switch (method) {
    case ThresholdMethod::entropy: return "entropy";
    case ThresholdMethod::minmax: return "minmax";
    case ThresholdMethod::percentile: return "percentile";
    case ThresholdMethod::mse: return "mse";
  }
  return "";
}

/// Returns the method of this name, or nothing for another string.
[[nodiscard]] inline std::optional<ThresholdMethod> find_threshold_method(std::string_view name) {
  for (const ThresholdMethod method : all_threshold_methods) {
    if (to_string(method) == name) return method;
  }
  return std::nullopt;
}

}  // namespace graft::report

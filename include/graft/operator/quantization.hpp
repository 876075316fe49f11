// How operators scale i8 and f8e4m3fn: real value = scale * stored value, zero point 0, as TensorRT's Q/DQ.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace graft {

inline constexpr const char* x_scale_doc = "i8 and f8e4m3fn only: the real value of 1 in x";
inline constexpr const char* y_scale_doc = "i8 and f8e4m3fn only: the real value of 1 in y";

/// Returns value / scale rounded to the nearest integer, ties to even, and saturated to -128..127; NaN becomes 0.
/// Finite values follow ONNX QuantizeLinear.
[[nodiscard]] inline std::int8_t quantize(double value, double scale) {
  const double steps = value / scale;
  if (std::isnan(steps)) return 0;
  return static_cast<std::int8_t>(std::clamp(std::nearbyint(steps), -128.0, 127.0));
}

}  // namespace graft

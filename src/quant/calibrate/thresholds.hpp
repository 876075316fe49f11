// Computes, from a histogram, the value at which int8 and f8 saturate.
#pragma once

#include "graft/report/quantize.hpp"
#include "quant/calibrate/histogram.hpp"
#include "quant/plan/eight_bits.hpp"

namespace graft::quant {

using report::ThresholdMethod;

/// Returns the default method for a type: percentile for int8, minmax for f8. The steps of f8 become finer for small
/// values, so a wider range costs almost no accuracy.
[[nodiscard]] ThresholdMethod usual_method(EightBits type);

struct ThresholdOptions {
  ThresholdMethod method = ThresholdMethod::percentile;
  double percentile = 99.99;  ///< The percentile in percent; above 0 and at most 100.
};

/// Returns the absolute value at which a tensor saturates, at most its largest observed value, or 0 if only zeros were
/// observed. Throws Error (internal) for the method entropy with f8, because entropy is defined for the steps of int8.
[[nodiscard]] double threshold_of(const Histogram& histogram, const ThresholdOptions& options,
                                  EightBits type = EightBits::int8);

/// Returns the scale: the real value of the quantized value 1, threshold / 127 for int8 or threshold / 448 for f8.
[[nodiscard]] float scale_of(double threshold, EightBits type);

}  // namespace graft::quant

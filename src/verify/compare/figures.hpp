// The range of a tensor's values, and the distribution of the errors of another tensor.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "graft/report/layers.hpp"
#include "onnx/tensor_data.hpp"

namespace graft::verify {

using report::ErrorFigures;
using report::ErrorHistogram;
using report::TensorRange;

/// The type of sums of squares. Its exponent has more bits than that of double, so that squares of f64 numbers neither
/// overflow nor become 0.
using SumOfSquares = long double;
static_assert(std::numeric_limits<SumOfSquares>::max_exponent > 2 * std::numeric_limits<double>::max_exponent);

/// Returns 10 log10(signal / noise) of two sums of squares; nothing if one of them is 0, or if the ratio is not finite
/// because a difference exceeds double.
[[nodiscard]] std::optional<double> decibels_between(SumOfSquares signal, SumOfSquares noise);
/// Returns the square of a number in the type of the sum.
[[nodiscard]] inline SumOfSquares square_of(double number) { return static_cast<SumOfSquares>(number) * number; }

[[nodiscard]] TensorRange range_of(const onnx::TensorData& tensor);

/// Accumulates the range, the mean and the counts of NaN, infinities and zeros of a tensor, number by number.
class RangeTally {
 public:
  void add(double number) {
    if (!std::isfinite(number)) {
      ++(std::isnan(number) ? nan_ : infinite_);
      return;
    }
    if (number == 0) ++zeros_;
    lowest_ = std::min(lowest_, number);
    highest_ = std::max(highest_, number);
    sum_ += number;
    squares_ += number * number;
  }
  /// Returns the accumulated values as the range of a tensor with `count` elements.
  [[nodiscard]] TensorRange of(std::int64_t count) const;

 private:
  std::int64_t nan_ = 0;
  std::int64_t infinite_ = 0;
  std::int64_t zeros_ = 0;
  double lowest_ = std::numeric_limits<double>::infinity();
  double highest_ = -std::numeric_limits<double>::infinity();
  double sum_ = 0;
  double squares_ = 0;
};

[[nodiscard]] ErrorFigures error_figures(const onnx::TensorData& reference, const onnx::TensorData& candidate);

}  // namespace graft::verify

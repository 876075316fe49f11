// The range of a tensor's numbers, and the distribution of another tensor's errors.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "onnx/tensor_data.hpp"

namespace graft::verify {

/// A sum of squares. Its exponent has more bits than that of double, so that squares of f64 numbers neither overflow
/// nor become 0.
using SumOfSquares = long double;
static_assert(std::numeric_limits<SumOfSquares>::max_exponent > 2 * std::numeric_limits<double>::max_exponent);

/// Returns 10 log10(signal / noise) of two sums of squares; nothing if one of them is 0, or if the ratio is not finite
/// because a difference exceeds double.
[[nodiscard]] std::optional<double> decibels_between(SumOfSquares signal, SumOfSquares noise);
/// Returns the square of a number in the type of the sum.
[[nodiscard]] inline SumOfSquares square_of(double number) { return static_cast<SumOfSquares>(number) * number; }

/// The range and sums of a tensor's numbers.
struct TensorRange {
  std::int64_t count = 0;
  std::int64_t nan = 0;
  std::int64_t infinite = 0;
  std::int64_t zeros = 0;
  std::optional<double> lowest;  ///< The lowest finite element; nothing if no element is finite.
  std::optional<double> highest;
  double sum = 0;      ///< The sum of the finite elements.
  double squares = 0;  ///< The sum of the squares of the finite elements.

  [[nodiscard]] double largest() const;  ///< Returns the largest absolute value of the finite elements, or 0.
  /// Adds the range of the same tensor in another run.
  void add(const TensorRange& other);
  /// Returns for example "-1.5 to 3.2", "-1.5 to 3.2, 2 NaN" or "no finite value".
  [[nodiscard]] std::string to_string() const;
};

[[nodiscard]] TensorRange range_of(const onnx::TensorData& tensor);

/// Accumulates a range, number by number.
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
  /// Returns the range of a tensor with `count` elements.
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

/// The distribution of |reference - candidate| divided by the largest finite |reference|.
struct ErrorHistogram {
  /// The bins. "not finite" counts elements that are NaN or infinite in one tensor only, or infinite with different
  /// signs.
  static constexpr std::array<std::string_view, 11> names{"0",     "<1e-7", "<1e-6", "<1e-5", "<1e-4",     "<1e-3",
                                                          "<1e-2", "<1e-1", "<1",    ">=1",   "not finite"};
  std::array<std::int64_t, names.size()> counts{};
};

/// The error of a tensor, seen as noise. Both tensors have the same number of elements.
struct ErrorFigures {
  /// 10 log10(sum of squares of the reference / sum of squares of the error) over elements that are finite in both;
  /// nothing if the error or the reference is 0, or if a difference exceeds double.
  std::optional<double> snr_db;
  double root_mean_square = 0;
  ErrorHistogram histogram;
};

[[nodiscard]] ErrorFigures error_figures(const onnx::TensorData& reference, const onnx::TensorData& candidate);

}  // namespace graft::verify

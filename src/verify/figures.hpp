// What is in a tensor, and how the errors of another one are distributed.
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

/// Of a tensor of numbers.
struct TensorRange {
  std::int64_t count = 0;
  std::int64_t nan = 0;
  std::int64_t infinite = 0;
  std::int64_t zeros = 0;
  std::optional<double> lowest;  ///< Of the finite elements; nothing where there is none.
  std::optional<double> highest;
  double sum = 0;      ///< Of the finite elements.
  double squares = 0;  ///< The sum of their squares.

  [[nodiscard]] double largest() const;  ///< The largest absolute value.
  /// Adds what another run gave for the same tensor.
  void add(const TensorRange& other);
  /// "-1.5 to 3.2", "-1.5 to 3.2, 2 NaN", "nothing finite".
  [[nodiscard]] std::string to_string() const;
};

[[nodiscard]] TensorRange range_of(const onnx::TensorData& tensor);

/// A range while numbers are added to it one by one.
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
  /// Of so many elements, all that there are in the tensor.
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

/// How many elements have an error of which size: |reference - candidate| divided by the largest finite |reference|.
struct ErrorHistogram {
  /// "0", "<1e-7", ... "<1", ">=1", "not finite": the last is NaN or infinite on one side only.
  static constexpr std::array<std::string_view, 11> names{"0",     "<1e-7", "<1e-6", "<1e-5", "<1e-4",     "<1e-3",
                                                          "<1e-2", "<1e-1", "<1",    ">=1",   "not finite"};
  std::array<std::int64_t, names.size()> counts{};
};

/// The error as a signal: of two tensors with as many elements.
struct ErrorFigures {
  /// 10 log10 of the reference's squares divided by the error's, where both are finite; nothing without an error or
  /// without a reference.
  std::optional<double> snr_db;
  double root_mean_square = 0;
  ErrorHistogram histogram;
};

[[nodiscard]] ErrorFigures error_figures(const onnx::TensorData& reference, const onnx::TensorData& candidate);

}  // namespace graft::verify

// Measures the quality of a model's outputs in a narrower type, compared with f32.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onnx/tensor_data.hpp"

namespace graft::verify {

/// The signal-to-noise ratio in dB that counts for a signal without an error; errors without a signal count as its
/// negative.
inline constexpr double perfect_db = 150;

/// The errors of one output.
struct OutputFigures {
  std::string name;
  std::optional<double> snr_db;  ///< Empty without a difference or without a signal.
  double largest_error = 0;      ///< Largest |f32 - result| where both are finite.
  std::int64_t elements = 0;
  std::int64_t differing = 0;   ///< Number of elements that differ; only for integers and booleans.
  std::int64_t not_finite = 0;  ///< Number of elements that are NaN or infinite in the result but finite in f32.
  /// Number of rows along the last axis; only for real numbers, and 0 if there is only one column.
  std::int64_t rows = 0;
  std::int64_t same_top = 0;  ///< Number of rows whose largest element is at the same position.
  bool is_real = false;
  /// For example "dimensions differ: [3, 4] in f32, [3, 3] here", from the first run in which they differ.
  std::string incomparable;

  double signal = 0;  ///< Sum of squares of the finite f32 numbers.
  double noise = 0;   ///< Sum of squared errors.

  /// Returns the signal-to-noise ratio in dB. Without a ratio, returns perfect_db if there is no error, and -perfect_db
  /// otherwise.
  [[nodiscard]] double decibels() const;
  /// Adds the errors of the same output in another run.
  void add(const OutputFigures& other);
  /// Adds another run, but keeps signal and noise of the run with the lower ratio, so that a good run does not hide a
  /// bad one.
  void add_worst(const OutputFigures& other);
};

[[nodiscard]] OutputFigures figures_of(const std::string& name, const onnx::TensorData& reference,
                                       const onnx::TensorData& found);

/// The quality of all outputs together.
struct Score {
  std::int64_t not_finite = 0;
  double snr_db = 0;  ///< The ratio of the worst output.
  [[nodiscard]] bool meets(double limit) const { return not_finite == 0 && snr_db >= limit; }
  /// Whether the score is better by enough to justify another node.
  [[nodiscard]] bool is_better_than(const Score& other) const;
};
[[nodiscard]] Score score_of(const std::vector<OutputFigures>& outputs);

}  // namespace graft::verify

// Measures the quality of a model's outputs in a narrower type, compared with f32.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graft/report/comparison.hpp"
#include "onnx/tensor_data.hpp"

namespace graft::verify {

/// The signal-to-noise ratio in dB that is used for a signal without an error. For errors without a signal its negative
/// is used.
inline constexpr double perfect_db = 150;

using report::OutputFigures;

/// Returns the signal-to-noise ratio in dB: perfect_db if there is no error, and -perfect_db if there are errors but no
/// ratio can be computed.
[[nodiscard]] double decibels_of(const OutputFigures& figures);
/// Adds the errors of the same output in another run to `figures`: counts and sums are added, and the larger of two
/// maxima is kept.
void add_run(OutputFigures& figures, const OutputFigures& other);
/// Adds the errors of the same output in another run as add_run does. The signal-to-noise ratio, however, becomes that
/// of the run with the lower ratio, so that a good run does not hide a bad one.
void add_worst_run(OutputFigures& figures, const OutputFigures& other);

/// Returns the figures of one run. Counts the rows with the same largest element only for a classifier's output.
[[nodiscard]] OutputFigures figures_of(const std::string& name, const onnx::TensorData& reference,
                                       const onnx::TensorData& found, bool is_classifier = false);

/// The quality of all outputs of a model together: the number of elements that are not finite, and the worst output.
struct Score {
  std::int64_t not_finite = 0;
  double snr_db = 0;  ///< The signal-to-noise ratio in dB of the worst output.
  [[nodiscard]] bool meets(double limit) const { return not_finite == 0 && snr_db >= limit; }
  /// Returns whether this score has fewer elements that are not finite than `other` or, with equally many, a ratio that
  /// is at least 1 dB higher. A smaller improvement does not justify keeping more nodes in f32.
  [[nodiscard]] bool is_better_than(const Score& other) const;
};
[[nodiscard]] Score score_of(const std::vector<OutputFigures>& outputs);

}  // namespace graft::verify

// How good a model's outputs are in another type, against those of f32.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onnx/tensor_data.hpp"

namespace graft::verify {

/// A signal without an error counts as this; errors without a signal as minus this.
inline constexpr double perfect_db = 150;

struct OutputFigures {
  std::string name;
  std::optional<double> snr_db;  ///< Nothing where nothing differs, or there is no signal.
  double largest_error = 0;      ///< |f32 - result|, where both are finite.
  std::int64_t elements = 0;
  std::int64_t differing = 0;   ///< Of integers and booleans.
  std::int64_t not_finite = 0;  ///< NaN or infinite, where the f32 network is finite.
  std::int64_t rows = 0;        ///< Of reals, along the last axis; 0 where there is only one column.
  std::int64_t same_top = 0;    ///< Rows whose largest element is at the same place.
  bool is_real = false;
  std::string incomparable;  ///< "dimensions differ: [3, 4] in f32, [3, 3] here", of the first run in which they do.

  double signal = 0;  ///< The sum of squares of f32's finite numbers.
  double noise = 0;   ///< The sum of squared errors.

  /// The ratio, or perfect_db.
  [[nodiscard]] double decibels() const;
  /// Adds what another run gave for the same output.
  void add(const OutputFigures& other);
  /// The same, but the signal and the noise are those of the run that has the lower ratio: a good run hides no bad one.
  void add_worst(const OutputFigures& other);
};

[[nodiscard]] OutputFigures figures_of(const std::string& name, const onnx::TensorData& reference,
                                       const onnx::TensorData& found);

/// Of all outputs together; more is better.
struct Score {
  std::int64_t not_finite = 0;
  double snr_db = 0;  ///< Of the worst output.
  [[nodiscard]] bool meets(double limit) const { return not_finite == 0 && snr_db >= limit; }
  /// By enough to be worth a node.
  [[nodiscard]] bool is_better_than(const Score& other) const;
};
[[nodiscard]] Score score_of(const std::vector<OutputFigures>& outputs);

}  // namespace graft::verify

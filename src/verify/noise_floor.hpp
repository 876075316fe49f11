// How far a model is from itself where its arithmetic rounds differently: what no comparison can call a difference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "onnx/tensor_data.hpp"
#include "verify/compare.hpp"
#include "verify/slice_maxima.hpp"

namespace graft::verify {

/// The axis along which alone the sizes differ; nothing where there is none such.
[[nodiscard]] std::optional<std::size_t> only_other_axis(const std::vector<std::int64_t>& left,
                                                         const std::vector<std::int64_t>& right);

/// Of one tensor. Kept is the largest deviation of each slice along each axis: that of an element is at most the
/// smallest of those of its slices. So a channel that is badly conditioned says nothing of the others, whichever axis
/// the channels are on.
class NoiseFloor {
 public:
  /// A tensor may be off by so many times its floor. Two models that round differently are both off by one.
  static constexpr double factor = 4;

  /// `tolerance` says what has a partner in a SelectionDifference.
  explicit NoiseFloor(const Tolerance& tolerance = {}) : tolerance_(tolerance) {}

  /// The tensor of one more run, beside that of the run without noise. Another integer (an index, a class) has no size,
  /// nor has a number that became NaN or infinite: any number may stand in that place. NaN on one side of a comparison
  /// remains a difference all the same.
  void add(const onnx::TensorData& reference, const onnx::TensorData& moved);

  [[nodiscard]] std::size_t runs() const { return runs_; }
  /// The dimensions themselves depend on rounding: how many boxes pass a threshold.
  [[nodiscard]] bool has_other_dims() const { return has_other_dims_; }
  /// What the draws show where one axis alone changed; nothing where the draws changed more, and cannot be compared.
  [[nodiscard]] std::optional<SelectionDifference> selection() const;
  /// Of an element, by its position.
  [[nodiscard]] double at(std::int64_t position) const;
  /// The most elements that became another integer in one draw. Which ones do is chance: a comparison bounds how many.
  [[nodiscard]] std::int64_t most_others() const { return most_others_; }
  /// Whether a draw gave this integer, which is not the reference's, at a position.
  [[nodiscard]] bool has_given(std::int64_t position, double integer) const;
  /// How many elements of one more draw are expected to become an integer that they were in none so far: for each
  /// element the integers that it was once, divided by the runs (Good and Turing 1953).
  [[nodiscard]] double expected_new() const;
  /// The largest finite deviation.
  [[nodiscard]] double largest() const { return deviations_ ? deviations_->whole() : 0; }
  /// That, divided by the largest of the reference.
  [[nodiscard]] double share() const;
  /// Elements that became NaN, infinite or another integer in one run at least.
  [[nodiscard]] bool has_unlimited() const { return has_unlimited_; }
  /// Whether the noise is as large as the numbers, so that hardly anything would be called a difference.
  [[nodiscard]] bool says_little() const;
  /// Whether rounding alone moves most elements by more than the largest number: a change of sign would pass.
  [[nodiscard]] bool allows_anything() const;
  /// "the reference itself moves by up to 0.0023 (0.15 % of its largest) where its arithmetic rounds differently (8
  /// runs); 4 times that is allowed"; of integers "... 3 elements of the reference itself become other integers; ...".
  [[nodiscard]] std::string to_string() const;

 private:
  void add_other_dims(const onnx::TensorData& reference, const onnx::TensorData& moved);

  Tolerance tolerance_;
  std::optional<SliceMaxima> deviations_;
  std::vector<bool> unlimited_;                                   ///< By position.
  std::unordered_map<std::int64_t, std::vector<double>> others_;  ///< Integers of the draws, by position.
  std::int64_t most_others_ = 0;
  double largest_reference_ = 0;
  bool has_other_dims_ = false;
  bool is_selection_ = false;  ///< All other dimensions so far are of another size along `selection_.axis`.
  SelectionDifference selection_;
  bool has_unlimited_ = false;
  std::size_t runs_ = 0;
};

/// Whether a tensor that counts as equal is beyond its tolerance, and rounding alone takes the reference so far from
/// itself that the comparison shows nothing.
[[nodiscard]] inline bool is_lost_in_noise(const Difference& difference, const std::optional<NoiseFloor>& floor) {
  return difference.within_noise > 0 && floor && floor->allows_anything();
}

}  // namespace graft::verify

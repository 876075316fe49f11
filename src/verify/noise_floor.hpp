// How far a model is from itself where its arithmetic rounds differently: what no comparison can call a difference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
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
  /// The share of integers that may be others than in any draw. A floor that would have to allow more shows nothing.
  static constexpr double most_unseen = 0.25;

  /// `tolerance` says what has a partner in a SelectionDifference.
  explicit NoiseFloor(const Tolerance& tolerance = {}) : tolerance_(tolerance) {}

  /// Adds what one draw changed: the difference between `moved`, the tensor with noise, and `still`, the tensor that
  /// the same compiled model returns without noise. `reference` is the tensor that is compared; another engine, or
  /// another form of the model, may have computed it. Another integer (an index, a class) has no size, nor has a number
  /// that became NaN or infinite: any number may stand in that place. NaN on one side of a comparison remains a
  /// difference all the same. A draw in which `still` has other dimensions than `reference` counts only where noise
  /// changes them.
  void add(const onnx::TensorData& reference, const onnx::TensorData& still, const onnx::TensorData& moved);

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
  /// Whether more than 1 % of a tensor moves, or its elements become NaN, or its size changes. Then the measurement has
  /// to be confirmed by a second engine before it excuses a difference.
  [[nodiscard]] bool is_suspect() const;
  /// The engine that confirmed the measurement.
  void set_confirmed_by(std::string_view engine) { confirmed_by_ = engine; }
  /// Says why a second engine did not confirm the measurement, in a sentence that begins with the engine's name.
  void set_unconfirmed(std::string why) { why_unconfirmed_ = std::move(why); }
  /// Empty where it is confirmed, or no second engine measured it.
  [[nodiscard]] const std::string& why_unconfirmed() const { return why_unconfirmed_; }
  /// Whether it may excuse a difference: it is small, or it is confirmed.
  [[nodiscard]] bool is_trusted() const { return !is_suspect() || !confirmed_by_.empty(); }
  /// Whether the noise is as large as the numbers, so that hardly anything would be called a difference.
  [[nodiscard]] bool says_little() const;
  /// Whether rounding alone changes the tensor so much that hardly any difference would show: most real elements move
  /// by more than half of the range that zero and the reference span (a change of sign would pass); one draw changes
  /// most integers; another draw is expected to bring too many new integers; draws gave most elements every integer
  /// that the tensor holds (a boolean that is true in one draw and false in another); half of a selection has no
  /// partner.
  [[nodiscard]] bool allows_anything() const;
  /// "the reference itself moves by up to 0.0023 (0.15 % of its largest) where its arithmetic rounds differently (8
  /// runs); 4 times that is allowed"; of integers "... 3 elements of the reference itself become other integers; ...".
  [[nodiscard]] std::string to_string() const;

 private:
  void add_other_dims(const onnx::TensorData& reference, const onnx::TensorData& moved);
  void add_integer(double integer);
  [[nodiscard]] bool allows_any_integer() const;

  Tolerance tolerance_;
  std::optional<SliceMaxima> deviations_;
  std::vector<bool> unlimited_;                                   ///< By position.
  std::unordered_map<std::int64_t, std::vector<double>> others_;  ///< Integers of the draws, by position.
  std::int64_t most_others_ = 0;
  std::set<double> integers_;  ///< The first few that the reference and the draws hold.
  double largest_reference_ = 0;
  double range_ = 0;  ///< From the lowest number of the reference, or 0, to its highest, or 0.
  bool has_other_dims_ = false;
  bool is_selection_ = false;  ///< All other dimensions so far are of another size along `selection_.axis`.
  SelectionDifference selection_;
  std::int64_t selection_elements_ = 0;  ///< The most that the reference or a draw has.
  bool has_unlimited_ = false;
  bool has_other_kind_ = false;  ///< A number became NaN or infinite.
  std::size_t runs_ = 0;
  std::string confirmed_by_;
  std::string why_unconfirmed_;
};

/// Whether only the noise floor makes a tensor equal, and the floor may not be relied on: rounding alone takes the
/// reference so far from itself that the comparison shows nothing, or no second engine confirmed a suspect floor.
[[nodiscard]] inline bool is_lost_in_noise(const Difference& difference, const std::optional<NoiseFloor>& floor) {
  return difference.within_noise > 0 && floor && (floor->allows_anything() || !floor->is_trusted());
}

/// Whether a suspect floor that no engine confirmed is all that makes a tensor equal.
[[nodiscard]] inline bool needs_confirmation(const Difference& difference, const NoiseFloor& floor) {
  return difference.equal() && difference.within_noise > 0 && !floor.is_trusted();
}

/// Compares again by the floor that a second engine measured, and takes its answer: the difference and the floor become
/// those of the second measurement where it does not excuse as much.
void confirm(const onnx::TensorData& reference, const onnx::TensorData& candidate, const Tolerance& tolerance,
             const NoiseFloor& second, std::string_view engine, Difference& difference, NoiseFloor& floor);

}  // namespace graft::verify

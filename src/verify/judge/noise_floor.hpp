// Measures how much a model differs from itself if its arithmetic is rounded differently. Such differences do not count
// as errors in a comparison.
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
#include "verify/compare/compare.hpp"
#include "verify/compare/slice_maxima.hpp"

namespace graft::verify {

/// Returns the only axis along which the sizes differ, or nothing if there is not exactly one.
[[nodiscard]] std::optional<std::size_t> only_other_axis(const std::vector<std::int64_t>& left,
                                                         const std::vector<std::int64_t>& right);

/// The deviations of one tensor over several draws. The object stores the largest deviation of each slice along each
/// axis, and the deviation of an element is at most the smallest value of its slices. Therefore a badly conditioned
/// channel does not raise the floor of other channels, whichever axis is the channel axis.
class NoiseFloor {
 public:
  /// The multiple of its floor by which a tensor may be off. It exceeds 1 because both models may be off by one floor.
  static constexpr double factor = 4;
  /// The fraction of elements that may have an integer that no draw returned. A floor that would have to allow more
  /// cannot detect anything.
  static constexpr double most_unseen = 0.25;

  /// `tolerance` decides which elements are partners in a SelectionDifference.
  explicit NoiseFloor(const Tolerance& tolerance = {}) : tolerance_(tolerance) {}

  /// Adds the changes of one draw: the difference between `moved`, the tensor with noise, and `still`, the tensor that
  /// the same compiled model returns without noise. `reference` is the tensor that is compared; another engine may have
  /// computed it, or another form of the model. An integer without a magnitude (an index, a class) that changed, and a
  /// number that became NaN or infinite (or the reverse), have no finite deviation. Such an element alone is never a
  /// difference; changed integers are judged by their number. A real number is undecided (Difference::undecided) if it
  /// is beyond the finite deviations of its slices, or NaN or infinite in one tensor only. A draw in which `still` has
  /// other dimensions than `reference` counts only if the noise changes the dimensions.
  void add(const onnx::TensorData& reference, const onnx::TensorData& still, const onnx::TensorData& moved);

  [[nodiscard]] std::size_t runs() const { return runs_; }
  /// Returns whether the dimensions depend on rounding, for example the number of boxes above a threshold.
  [[nodiscard]] bool has_other_dims() const { return has_other_dims_; }
  /// Returns the sizes and partners in the draws if only one axis changed; nothing if the draws changed more and cannot
  /// be compared.
  [[nodiscard]] std::optional<SelectionDifference> selection() const;
  /// Returns the floor of the element at a position; infinity if the element became NaN, infinite or another integer in
  /// a draw.
  [[nodiscard]] double at(std::int64_t position) const;
  /// Returns the floor of the element at a position, ignoring the draws without a finite deviation.
  [[nodiscard]] double finite_at(std::int64_t position) const { return deviations_ ? deviations_->at(position) : 0; }
  /// Returns the largest number of elements that became another integer in one draw. Which elements change is random,
  /// so that a comparison limits only their number.
  [[nodiscard]] std::int64_t most_others() const { return most_others_; }
  /// Returns the largest number of 8-bit integers that one draw raised more than it lowered, or the reverse.
  [[nodiscard]] std::int64_t most_shifted() const { return most_shifted_; }
  /// Returns whether a draw returned this integer, which differs from the reference's, at a position.
  [[nodiscard]] bool has_given(std::int64_t position, double integer) const;
  /// Returns how many elements of one more draw are expected to become an integer that they had in no draw before: the
  /// number of integers that an element had exactly once, summed over all elements and divided by the number of runs,
  /// with the reference as one run (Good and Turing 1953).
  [[nodiscard]] double expected_new() const;
  /// Returns the largest finite deviation.
  [[nodiscard]] double largest() const { return deviations_ ? deviations_->whole() : 0; }
  /// Returns the largest finite deviation divided by the largest number of the reference.
  [[nodiscard]] double share() const;
  /// Returns whether an element became NaN, infinite or another integer in at least one draw.
  [[nodiscard]] bool has_unlimited() const { return has_unlimited_; }
  /// Returns whether a second engine must confirm the floor before it excuses a difference: an element moves by more
  /// than 1 % of the largest, more than 1 % of the elements become other integers, an element becomes NaN or infinite,
  /// or the dimensions change.
  [[nodiscard]] bool is_suspect() const;
  /// Sets the name of the engine that confirmed the measurement.
  void set_confirmed_by(std::string_view engine) { confirmed_by_ = engine; }
  /// Sets the reason why a second engine did not confirm the measurement, as a sentence that begins with the engine's
  /// name.
  void set_unconfirmed(std::string why) { why_unconfirmed_ = std::move(why); }
  /// Returns that reason; empty if the measurement is confirmed or no second engine measured it.
  [[nodiscard]] const std::string& why_unconfirmed() const { return why_unconfirmed_; }
  /// Returns whether the floor may excuse a difference: it is not suspect, or it was confirmed.
  [[nodiscard]] bool is_trusted() const { return !is_suspect() || !confirmed_by_.empty(); }
  /// Returns whether the noise is large enough to hide differences: an element moves by more than 0.1 % of the largest,
  /// an element becomes NaN, infinite or another integer, or the dimensions change.
  [[nodiscard]] bool says_little() const;
  /// Returns whether rounding alone changes the tensor so much that hardly any difference would be detected. That is
  /// the case if one of these is true: most real elements move by more than half of the range of zero and the reference
  /// (so that a change of sign would pass); one draw changes most integers; another draw is expected to return too many
  /// new integers; for most elements, the draws returned every integer that the tensor contains (a boolean that is true
  /// in one draw and false in another); half of the elements of a selection have no partner.
  [[nodiscard]] bool allows_anything() const;
  /// Returns a text such as "the reference itself changes by up to 0.0023 (0.15 % of its largest value) where its
  /// arithmetic rounds differently (8 runs); 4 times that is allowed"; for integers "... 3 elements of the reference
  /// itself become other integers; ...".
  [[nodiscard]] std::string to_string() const;

 private:
  void add_other_dims(const onnx::TensorData& reference, const onnx::TensorData& moved);
  void add_integer(double integer);
  [[nodiscard]] bool allows_any_integer() const;

  Tolerance tolerance_;
  std::optional<SliceMaxima> deviations_;
  std::vector<bool> unlimited_;  ///< Whether an element became NaN, infinite or another integer, by position.
  /// Integers of the draws that differ from the reference's, by position.
  std::unordered_map<std::int64_t, std::vector<double>> others_;
  std::int64_t most_others_ = 0;
  std::int64_t most_shifted_ = 0;
  std::set<double> integers_;  ///< Different integers in the reference and the draws, at most 32.
  double largest_reference_ = 0;
  double range_ = 0;  ///< Width of the range that 0 and the reference's elements span.
  bool has_other_dims_ = false;
  bool is_selection_ = false;  ///< Whether all changed dimensions so far differ only along `selection_.axis`.
  SelectionDifference selection_;
  std::int64_t selection_elements_ = 0;  ///< Largest number of elements of the reference or a draw.
  bool has_unlimited_ = false;
  bool has_other_kind_ = false;  ///< Whether a real number became NaN or infinite.
  std::size_t runs_ = 0;
  std::string confirmed_by_;
  std::string why_unconfirmed_;
};

/// Returns the part of a floor that reports show, for the floor with which the tensors of this difference were
/// compared; nothing without a floor.
[[nodiscard]] std::optional<report::NoiseFloor> summary_of(const std::optional<NoiseFloor>& floor,
                                                           const Difference& difference);

/// Returns whether a tensor counts as equal only because of a noise floor that is not reliable: rounding alone changes
/// the reference so much that the comparison proves nothing, an element is undecided, or no second engine confirmed a
/// suspect floor.
[[nodiscard]] inline bool is_lost_in_noise(const Difference& difference, const std::optional<NoiseFloor>& floor) {
  return difference.within_noise > 0 && floor &&
         (difference.undecided > 0 || floor->allows_anything() || !floor->is_trusted());
}

/// Returns whether a tensor counts as equal only because of a suspect floor that no engine confirmed.
[[nodiscard]] inline bool needs_confirmation(const Difference& difference, const NoiseFloor& floor) {
  return difference.equal() && difference.within_noise > 0 && !floor.is_trusted();
}

/// Compares again with the floor that a second engine measured. If the tensors are equal by that floor too, without
/// undecided elements that the first floor decided, marks `floor` as confirmed; otherwise replaces `difference` and
/// `floor` with those of the second measurement. With `is_coarser`, the second engine measured with the noise of f32,
/// while the first one may have measured with that of f64. Such a floor excuses almost anything if it is suspect, so it
/// can refute but not confirm.
void confirm(const onnx::TensorData& reference, const onnx::TensorData& candidate, const Tolerance& tolerance,
             const NoiseFloor& second, std::string_view engine, Difference& difference, NoiseFloor& floor,
             bool is_coarser = false);

}  // namespace graft::verify

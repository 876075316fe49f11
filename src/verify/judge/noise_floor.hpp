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

/// Returns the axis along which two shapes of equal rank differ, or nothing unless they differ along exactly one axis.
[[nodiscard]] std::optional<std::size_t> only_other_axis(const std::vector<std::int64_t>& left,
                                                         const std::vector<std::int64_t>& right);

/// The noise floor of one tensor: how much its elements change when the rounding in the model changes, over several
/// runs with noise ("noisy runs"). Stores the largest deviation of each slice along each axis; the deviation of an
/// element is the smallest of those of its slices. A badly conditioned channel therefore does not raise the floor of
/// other channels, whichever axis is the channel axis.
class NoiseFloor {
 public:
  /// The multiple of the floor by which a tensor may differ. It is greater than 1 because the rounding errors of both
  /// models may be as large as the floor.
  static constexpr double factor = 4;
  /// The maximum fraction of elements that may have an integer value that no noisy run returned. If more would have to
  /// be allowed, the floor cannot detect any difference.
  static constexpr double most_unseen = 0.25;

  /// `tolerance` decides which elements of two tensors count as partners if the dimensions depend on rounding.
  explicit NoiseFloor(const Tolerance& tolerance = {}) : tolerance_(tolerance) {}

  /// Adds one noisy run: the difference between `moved`, the tensor with noise, and `still`, the tensor that the same
  /// compiled model returns without noise. `reference` is the tensor that is compared; another engine, or another form
  /// of the model, may have computed it. If an identifier (an index, a class) changes, or a number becomes NaN or
  /// infinite or the reverse, the element has no finite deviation: its floor is infinite, so that it alone is never a
  /// difference. The number of changed identifiers is limited instead, and a real number beyond the finite deviations
  /// of its slices is undecided (Difference::undecided). A noisy run in which `still` has other dimensions than
  /// `reference` counts only if the noise changes the dimensions.
  void add(const onnx::TensorData& reference, const onnx::TensorData& still, const onnx::TensorData& moved);

  [[nodiscard]] std::size_t runs() const { return runs_; }
  /// Returns whether rounding changes the dimensions, such as the number of boxes above a threshold.
  [[nodiscard]] bool has_other_dims() const { return has_other_dims_; }
  /// Returns the range of sizes and the pairing of elements in the noisy runs, if rounding changes only the size of one
  /// axis; otherwise nothing.
  [[nodiscard]] std::optional<SelectionDifference> selection() const;
  /// Returns the floor of the element at a row-major position, an absolute difference. It is infinite if the element
  /// became NaN, infinite or another identifier in a noisy run.
  [[nodiscard]] double at(std::int64_t position) const;
  /// Returns the floor of the element at a row-major position from the finite deviations only; 0 without noisy runs.
  [[nodiscard]] double finite_at(std::int64_t position) const { return deviations_ ? deviations_->at(position) : 0; }
  /// Returns the largest number of elements that became another identifier in one noisy run. Which elements change is
  /// random, so a comparison limits only their number.
  [[nodiscard]] std::int64_t most_others() const { return most_others_; }
  /// Returns the largest difference, in one noisy run, between the number of 8-bit integers that became larger and the
  /// number that became smaller.
  [[nodiscard]] std::int64_t most_shifted() const { return most_shifted_; }
  /// Returns whether a noisy run returned `integer` at a position where the reference has another value.
  [[nodiscard]] bool has_given(std::int64_t position, double integer) const;
  /// Returns the expected number of elements that would get a value in one more noisy run that they had in no noisy run
  /// before. It is the number of values that an element had exactly once, summed over all elements, divided by the
  /// number of runs, where the reference counts as a run (Good and Turing 1953).
  [[nodiscard]] double expected_new() const;
  /// Returns the largest finite deviation of all elements; 0 without noisy runs.
  [[nodiscard]] double largest() const { return deviations_ ? deviations_->whole() : 0; }
  /// Returns the largest finite deviation divided by the largest absolute number of the reference.
  [[nodiscard]] double share() const;
  /// Returns whether an element became NaN, infinite or another identifier in at least one noisy run.
  [[nodiscard]] bool has_unlimited() const { return has_unlimited_; }
  /// Returns whether the floor is so large that a second engine must confirm it before it excuses a difference: an
  /// element moves by more than 1 % of the largest, more than 1 % of the elements become other identifiers, an element
  /// becomes NaN or infinite, or the dimensions change.
  [[nodiscard]] bool is_suspect() const;
  /// Sets the name of the engine that confirmed the measurement.
  void set_confirmed_by(std::string_view engine) { confirmed_by_ = engine; }
  /// Sets the reason why a second engine did not confirm the floor, a sentence that begins with the engine's name.
  void set_unconfirmed(std::string why) { why_unconfirmed_ = std::move(why); }
  /// Returns the reason set by set_unconfirmed(); empty if the floor is confirmed or no second engine measured it.
  [[nodiscard]] const std::string& why_unconfirmed() const { return why_unconfirmed_; }
  /// Returns whether the floor may excuse a difference: it is not suspect, or it was confirmed.
  [[nodiscard]] bool is_trusted() const { return !is_suspect() || !confirmed_by_.empty(); }
  /// Returns whether the noise may hide real differences: an element moves by more than 0.1 % of the largest, an
  /// element becomes NaN, infinite or another identifier, or the dimensions change.
  [[nodiscard]] bool says_little() const;
  /// Returns whether rounding alone changes the tensor so much that hardly any difference would be detected. This is
  /// the case if one of these conditions holds:
  /// - Most real elements move by more than half of the width of the smallest range that contains 0 and the reference,
  ///   so that a change of sign would pass.
  /// - One noisy run changes most integers, or another noisy run is expected to return too many new integers.
  /// - For most elements, the noisy runs returned every integer that occurs in the tensor, such as both values of a
  ///   boolean.
  /// - Only the size of one axis differs between noisy runs, and half of the elements have no partner in another run.
  [[nodiscard]] bool allows_anything() const;
  /// Returns a description for reports, such as "the reference itself changes by up to 0.0023 (0.15 % of its largest
  /// value) where its arithmetic rounds differently (8 runs); 4 times that is allowed" or, for integers, "... 3
  /// elements of the reference itself become other integers; ...".
  [[nodiscard]] std::string to_string() const;

 private:
  void add_other_dims(const onnx::TensorData& reference, const onnx::TensorData& moved);
  void add_integer(double integer);
  [[nodiscard]] bool allows_any_integer() const;

  Tolerance tolerance_;
  std::optional<SliceMaxima> deviations_;
  std::vector<bool> unlimited_;  ///< Whether an element became NaN, infinite or another integer, by position.
  /// The values in noisy runs that differ from the reference's, by row-major position. Integer tensors only.
  std::unordered_map<std::int64_t, std::vector<double>> others_;
  std::int64_t most_others_ = 0;
  std::int64_t most_shifted_ = 0;
  std::set<double> integers_;  ///< Different integers in the reference and the noisy runs, at most 32.
  double largest_reference_ = 0;
  double range_ = 0;  ///< Width of the range that 0 and the reference's elements span.
  bool has_other_dims_ = false;
  bool is_selection_ = false;  ///< Whether all changed dimensions so far differ only along `selection_.axis`.
  SelectionDifference selection_;
  std::int64_t selection_elements_ = 0;  ///< Largest number of elements of the reference or a noisy run.
  bool has_unlimited_ = false;
  bool has_other_kind_ = false;  ///< Whether a real number became NaN or infinite.
  std::size_t runs_ = 0;
  std::string confirmed_by_;
  std::string why_unconfirmed_;
};

/// Returns the summary of a floor for reports, or nothing if `floor` is empty. `difference` is the result of the
/// comparison with this floor.
[[nodiscard]] std::optional<report::NoiseFloor> summary_of(const std::optional<NoiseFloor>& floor,
                                                           const Difference& difference);

/// Returns whether a tensor counts as equal only because of an unreliable noise floor: rounding alone changes the
/// reference so much that the comparison proves nothing, an element is undecided, or the floor is suspect and no second
/// engine confirmed it.
[[nodiscard]] inline bool is_lost_in_noise(const Difference& difference, const std::optional<NoiseFloor>& floor) {
  return difference.within_noise > 0 && floor &&
         (difference.undecided > 0 || floor->allows_anything() || !floor->is_trusted());
}

/// Returns whether a tensor counts as equal only because of a suspect floor that no second engine has confirmed yet.
[[nodiscard]] inline bool needs_confirmation(const Difference& difference, const NoiseFloor& floor) {
  return difference.equal() && difference.within_noise > 0 && !floor.is_trusted();
}

/// Repeats a comparison with `second`, the floor that a second engine measured. If the tensors are equal by that floor
/// too, and it leaves no element undecided that the first floor decided, marks `floor` as confirmed. Otherwise replaces
/// `difference` and `floor` by those of the second engine.
///
/// `is_coarser` states that the second engine measured with the noise of f32, whereas the first one may have measured
/// with that of f64. Such a floor excuses almost any difference if it is suspect. It can then refute the first floor,
/// but not confirm it.
void confirm(const onnx::TensorData& reference, const onnx::TensorData& candidate, const Tolerance& tolerance,
             const NoiseFloor& second, std::string_view engine, Difference& difference, NoiseFloor& floor,
             bool is_coarser = false);

}  // namespace graft::verify

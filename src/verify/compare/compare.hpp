// Computes how far two tensors differ.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "onnx/model.hpp"
#include "onnx/tensor_data.hpp"
#include "verify/compare/slice_maxima.hpp"

namespace graft::verify {

class NoiseFloor;

/// The differences that a comparison allows. An element agrees if |reference - candidate| <= absolute + relative *
/// |reference| + of_largest * L: rounding in a sum scales with its largest terms, not with its result. L is the largest
/// finite |reference| of the tensor. With `by_slice`, L is the smallest of the maxima of the slices that contain the
/// element, one slice along each axis: boxes of 640 pixels must not relax the tolerance of the scores next to them.
/// Slices of fewer than 16 elements do not count, and L is at least 2^-23 of the largest of the tensor.
struct Tolerance {
  double relative = 0;
  double absolute = 0;
  double of_largest = 0;
  bool by_slice = false;
  /// Replaces the other limits by one for all elements together: the minimum of 10 log10(sum of squares of the
  /// reference / sum of squares of the error). NaN and infinities must agree nevertheless.
  std::optional<double> snr_db = {};
  /// An additional limit for all elements together: the minimum of the same ratio in dB, or the ratio of the reference
  /// to NoiseFloor::factor times its noise floor if that is less.
  std::optional<double> least_snr_db = {};

  /// Returns the tolerance for a rewrite of a few nodes. Epsilon is the distance from 1 to the next number of the type.
  /// In f32: relative 64 epsilon (8e-6) and 32 epsilon of the largest. In f16, bf16 and f8, whose results are rounded
  /// once from f32: 2 and 1 epsilon. f64 counts as f32, in which the CPU engine computes. One step for 8-bit integers
  /// that come from rounding real numbers (`quantized`); 0 for other integers. L is by slice in f32 and f64; larger
  /// differences are left to the noise floor.
  [[nodiscard]] static Tolerance of_rewrite(onnx::ElementType type, bool quantized = false);
  /// Returns the tolerance for the outputs of a whole network, whose layers amplify rounding: in f32 relative 1024
  /// epsilon (1.2e-4) and 256 epsilon of the largest; in other types the same as of_rewrite.
  [[nodiscard]] static Tolerance of_network(onnx::ElementType type, bool quantized = false);
};

/// The tolerance of each element of a reference. The reference must outlive this object.
class ElementTolerance {
 public:
  ElementTolerance(const Tolerance& tolerance, const onnx::TensorData& reference)
      : tolerance_(tolerance), reference_(&reference) {}

  /// Returns the tolerance of the element at `position`, whose reference value is `number`.
  [[nodiscard]] double at(std::int64_t position, double number);

 private:
  Tolerance tolerance_;
  const onnx::TensorData* reference_;
  std::optional<SliceMaxima> largest_;  ///< Computed on first use.
};

/// Whether a value results from rounding: the output of QuantizeLinear, of another ONNX operator that
/// quantizes its result, or of an operator of Graft, possibly in another shape or order. Other integers, such as
/// indices and classes, are exact.
[[nodiscard]] bool is_quantized(const onnx::Value& value);

/// Whether a node of the model rounds real numbers to 8 bits.
[[nodiscard]] bool quantizes(const onnx::Model& model);

/// The narrow type of each value of a main graph that is f16 or bf16 or that depends on such a value; if it depends on
/// both, bf16, the coarser type.
using NarrowTypes = std::unordered_map<const onnx::Value*, onnx::ElementType>;
[[nodiscard]] NarrowTypes narrow_types(const onnx::Model& model);
/// Returns the type that determines the rounding error of a value: its own type, or a narrower one in which it was
/// computed before.
[[nodiscard]] onnx::ElementType rounding_type(const NarrowTypes& narrow, const onnx::Value& value,
                                              onnx::ElementType own);

/// Returns the tensor whose mean a value is, if one node computes the mean, possibly in another shape or order; null
/// otherwise.
[[nodiscard]] const onnx::Value* mean_of(const onnx::Value& value);

/// Returns the largest absolute value of the finite elements, or 0 if there are no finite elements.
[[nodiscard]] double largest_finite(const onnx::TensorData& tensor);

/// The comparison of two tensors along an axis whose size depends on rounding, for example because elements are
/// selected by a threshold. Their numbers are compared without their order: the integers of one element of the axis
/// together, such as the row and the column that NonZero returns; real numbers separately for each slice of the other
/// axes.
struct SelectionDifference {
  std::size_t axis = 0;
  std::int64_t lowest = 0;  ///< The smallest size of the reference when its arithmetic rounds differently.
  /// The largest of these sizes.
  std::int64_t highest = 0;
  /// Number of elements for which the other tensor has no element within the tolerance.
  std::int64_t without_partner = 0;
  std::int64_t between_draws = 0;  ///< The largest number of such elements between the reference and its own draws.
};

/// The result of comparing two tensors.
struct Difference {
  std::int64_t count = 0;       ///< Number of elements compared.
  std::int64_t finite = 0;      ///< Number of elements that are finite in both tensors.
  std::int64_t mismatched = 0;  ///< Number of elements outside the tolerance, including NaN and infinity disagreements.
  /// Number of elements outside the tolerance but within the noise floor; they are not mismatches.
  std::int64_t within_noise = 0;
  std::int64_t nan_disagreements = 0;  ///< Number of elements that are NaN in one tensor only.
  /// Number of elements that are infinite in one tensor and finite or of the other sign in the other.
  std::int64_t infinity_disagreements = 0;
  std::int64_t nan_agreements = 0;  ///< Number of elements that are NaN in both tensors; they are not mismatches.
  double max_absolute = 0;  ///< Largest |reference - candidate| of the elements that are finite in both tensors.
  double max_relative = 0;  ///< Largest |reference - candidate| / |reference|, for reference != 0.
  std::vector<std::int64_t> max_absolute_at;  ///< Index of the element with max_absolute; empty if that is 0.
  std::vector<std::int64_t> max_relative_at;
  double excess = 0;  ///< Largest difference divided by the allowed difference; at most 1 if all elements agree.
  /// Signal-to-noise ratio of the finite elements; nothing without a difference or without a signal.
  std::optional<double> snr_db;
  /// The ratio in dB that Tolerance::least_snr_db and the noise floor require, if the tensor has less.
  std::optional<double> missed_snr_db;
  /// Cosine of the angle between both tensors as vectors; nothing if one is 0 or not finite.
  std::optional<double> cosine;

  std::vector<std::int64_t> first_index;  ///< Index of the first mismatch.
  double first_reference = 0;
  double first_candidate = 0;
  /// The comparison without order, if the dimensions depend on rounding. In this case max_absolute refers to partners.
  std::optional<SelectionDifference> selection;
  /// Whether the elements are integers without a size (an index, a class), which are either equal or different.
  bool is_choice = false;
  /// The reason why nothing was compared, for example different dimensions. Then equal() is false.
  std::string incomparable;

  [[nodiscard]] bool equal() const { return mismatched == 0 && incomparable.empty(); }
  /// Returns max_absolute, or NaN or infinity if an element has that value in one tensor only.
  [[nodiscard]] double worst_absolute() const;
  [[nodiscard]] double worst_relative() const;
  /// Returns the result as text: "largest difference 2.4e-06 at [0, 4], relative 3.1e-05 at [1, 2]" or "3 of 20
  /// elements differ, first at [0, 4]: 1.5 in the reference, 1.25 in the candidate; largest ...". Mentions elements
  /// that are NaN in both tensors.
  [[nodiscard]] std::string to_string() const;
};

/// Compares two tensors element by element, in double, and integers exactly. NaN agrees with NaN, an infinity with the
/// same infinity. The element types may differ; the numbers are compared. Strings and complex numbers are incomparable
/// unless they have the same bytes. With a `floor`, NoiseFloor::factor times the noise of an element is allowed in
/// addition to the tolerance. If the reference's own dimensions depend on rounding, the tensors are compared as a
/// SelectionDifference, whose limits come from the differences between the draws.
[[nodiscard]] Difference compare(const onnx::TensorData& reference, const onnx::TensorData& candidate,
                                 const Tolerance& tolerance, const NoiseFloor* floor = nullptr);

/// The result of pairing the numbers of two tensors whose sizes differ along at most one axis.
struct Partners {
  std::int64_t without = 0;          ///< Number of elements of either tensor without a partner in the other.
  std::int64_t nan_on_one_side = 0;  ///< Number of NaN in the second tensor without a NaN as partner in the first.
  std::int64_t finite = 0;           ///< Number of pairs whose numbers are finite.
  double largest_difference = 0;     ///< Largest difference between the numbers of a pair.
};
[[nodiscard]] Partners find_partners(const onnx::TensorData& reference, const onnx::TensorData& other, std::size_t axis,
                                     const Tolerance& tolerance);

}  // namespace graft::verify

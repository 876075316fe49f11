// How far two tensors are from each other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "onnx/model.hpp"
#include "onnx/tensor_data.hpp"
#include "verify/slice_maxima.hpp"

namespace graft::verify {

class NoiseFloor;

/// An element agrees where |reference - candidate| <= absolute + relative * |reference| + of_largest * L: rounding in a
/// sum scales with its largest terms, not with its result. L is the largest finite |reference| of the tensor, or, with
/// `by_slice`, of the slice of the element along each axis, the smallest of these: boxes of 640 pixels say nothing of
/// the scores beside them. Slices of fewer than 16 elements do not count,
/// and L is at least 2^-23 of the largest of all.
struct Tolerance {
  double relative = 0;
  double absolute = 0;
  double of_largest = 0;
  bool by_slice = false;
  /// In place of the others, of all elements together: 10 log10 of the reference's squares divided by the error's has
  /// to be as much. NaN and infinities have to agree all the same.
  std::optional<double> snr_db = {};
  /// Besides the others, of all elements together: the same ratio has to be as much, or as much as the ratio of the
  /// reference to NoiseFloor::factor times its noise floor, where that is less.
  std::optional<double> least_snr_db = {};

  /// What a rewrite of a few nodes may change. With epsilon the distance from 1 to the next number of the type:
  /// relative 64 epsilon in f32 (8e-6) and half of that of the largest; in f16, bf16 and f8, whose results are rounded
  /// once from f32, 2 and 1 epsilon. f64 counts as f32, in which the CPU engine computes. One step for the 8-bit
  /// integers that `quantized` says come from rounding real numbers; nothing for other integers.
  /// L is by slice in f32 and f64, where what a slice cannot explain is left to the noise floor.
  [[nodiscard]] static Tolerance of_rewrite(onnx::ElementType type, bool quantized = false);
  /// The same for the outputs of a whole network, whose layers enlarge it: in f32 1024 epsilon (1.2e-4) and 256 of the
  /// largest.
  [[nodiscard]] static Tolerance of_network(onnx::ElementType type, bool quantized = false);
};

/// What each element of a reference may be off by; the tensor has to outlive it.
class ElementTolerance {
 public:
  ElementTolerance(const Tolerance& tolerance, const onnx::TensorData& reference)
      : tolerance_(tolerance), reference_(&reference) {}

  /// Of the element at a position, which is this number.
  [[nodiscard]] double at(std::int64_t position, double number);

 private:
  Tolerance tolerance_;
  const onnx::TensorData* reference_;
  std::optional<SliceMaxima> largest_;  ///< Found when it is first asked for.
};

/// Whether a value is what rounding gave: the output of QuantizeLinear, of an operator of ONNX that quantizes its
/// result or of an operator of Graft, perhaps in another shape or order. Other integers, such as indices and classes,
/// are exact.
[[nodiscard]] bool is_quantized(const onnx::Value& value);

/// Whether a node of it rounds real numbers to 8 bits.
[[nodiscard]] bool quantizes(const onnx::Model& model);

/// Of the values of a main graph that are f16 or bf16, or are computed from such: the coarser of the two.
using NarrowTypes = std::unordered_map<const onnx::Value*, onnx::ElementType>;
[[nodiscard]] NarrowTypes narrow_types(const onnx::Model& model);
/// The type whose rounding is in a value: its own, or a narrower one that it was computed in before.
[[nodiscard]] onnx::ElementType rounding_type(const NarrowTypes& narrow, const onnx::Value& value,
                                              onnx::ElementType own);

/// What a value is the mean of, where one node computes it, perhaps in another shape or order; nullptr otherwise.
[[nodiscard]] const onnx::Value* mean_of(const onnx::Value& value);

/// The largest absolute value of the finite elements; 0 where there are none.
[[nodiscard]] double largest_finite(const onnx::TensorData& tensor);

/// Two tensors along an axis whose size depends on rounding: which elements pass a threshold. Their numbers are
/// compared without their order: integers of one element of the axis together, such as the row and the column that
/// NonZero gives; real numbers by each slice of the other axes.
struct SelectionDifference {
  std::size_t axis = 0;
  std::int64_t lowest = 0;  ///< Of the sizes that the reference has where its arithmetic rounds differently.
  std::int64_t highest = 0;
  std::int64_t without_partner = 0;  ///< Elements for which the other side has none within the tolerance.
  std::int64_t between_draws = 0;    ///< The most of these between the reference and itself.
};

struct Difference {
  std::int64_t count = 0;                     ///< Elements compared.
  std::int64_t finite = 0;                    ///< Of those, finite numbers on both sides.
  std::int64_t mismatched = 0;                ///< Of those, outside the tolerance; what is counted next is among them.
  std::int64_t within_noise = 0;              ///< Outside the tolerance and within the noise floor: no mismatch.
  std::int64_t nan_disagreements = 0;         ///< One is NaN and the other is not.
  std::int64_t infinity_disagreements = 0;    ///< One is infinite and the other is finite or of the other sign.
  std::int64_t nan_agreements = 0;            ///< Both are NaN; these are no mismatch.
  double max_absolute = 0;                    ///< Largest |reference - candidate| where both are finite.
  double max_relative = 0;                    ///< Largest of that divided by |reference|, where reference is not 0.
  std::vector<std::int64_t> max_absolute_at;  ///< Of which element; empty where it is 0.
  std::vector<std::int64_t> max_relative_at;
  double excess = 0;             ///< Largest of that divided by what is allowed; at most 1 where all agree.
  std::optional<double> snr_db;  ///< Of the finite elements; nothing where nothing differs, or there is no signal.
  /// The ratio that Tolerance::least_snr_db and the noise floor require, where the tensor has less.
  std::optional<double> missed_snr_db;
  std::optional<double> cosine;  ///< Of the angle between both as vectors; nothing if one is 0 or not finite.

  std::vector<std::int64_t> first_index;  ///< Of the first mismatch.
  double first_reference = 0;
  double first_candidate = 0;
  /// How it was compared where the dimensions depend on rounding; max_absolute is then that of partners.
  std::optional<SelectionDifference> selection;
  /// Of integers that have no size (an index, a class): they are the same or they are not.
  bool is_choice = false;
  std::string incomparable;  ///< Why nothing was compared: other dimensions, or text. Then not equal.

  [[nodiscard]] bool equal() const { return mismatched == 0 && incomparable.empty(); }
  /// max_absolute, or NaN or infinity where an element is that on one side only.
  [[nodiscard]] double worst_absolute() const;
  [[nodiscard]] double worst_relative() const;
  /// "largest difference 2.4e-06 at [0, 4], relative 3.1e-05 at [1, 2]" or "3 of 20 elements differ, first at [0, 4]:
  /// 1.5 in the reference, 1.25 in the candidate; largest ...". Where elements are NaN on both sides it says so.
  [[nodiscard]] std::string to_string() const;
};

/// Element by element, in double, integers exactly. NaN agrees with NaN, an infinity with the same infinity. The
/// element types may differ; the numbers are compared. Text and complex numbers are incomparable unless they are the
/// same bytes. With a `floor`, NoiseFloor::factor times that of an element is allowed beside the tolerance; where the
/// reference's own dimensions depend on rounding, a SelectionDifference is compared instead, within what the draws
/// differ by themselves.
[[nodiscard]] Difference compare(const onnx::TensorData& reference, const onnx::TensorData& candidate,
                                 const Tolerance& tolerance, const NoiseFloor* floor = nullptr);

/// Two tensors whose sizes differ along one axis at most.
struct Partners {
  std::int64_t without = 0;          ///< Elements of either that have no partner in the other.
  std::int64_t nan_on_one_side = 0;  ///< Of those.
  std::int64_t finite = 0;           ///< Pairs of partners that are finite.
  double largest_difference = 0;     ///< Of partners.
};
[[nodiscard]] Partners find_partners(const onnx::TensorData& reference, const onnx::TensorData& other, std::size_t axis,
                                     const Tolerance& tolerance);

}  // namespace graft::verify

// Computes how far two tensors differ.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "graft/report/comparison.hpp"
#include "onnx/model.hpp"
#include "onnx/tensor_data.hpp"
#include "verify/compare/slice_maxima.hpp"

namespace graft::verify {

class NoiseFloor;

using report::Difference;
using report::SelectionDifference;
using report::Tolerance;

/// Returns whether `one`, the difference of a tensor in one run, is stronger evidence against the tensor than `other`,
/// the difference in another run. A run that is equal only because of the noise floor is stronger evidence than one
/// within the tolerance.
[[nodiscard]] bool is_worse(const Difference& one, const Difference& other);

/// Returns the tolerance for a rewrite of a few nodes. Epsilon is the distance from 1 to the next number of the type.
/// In f32 the tolerance is 64 epsilon (8e-6) relative, plus 32 epsilon of the largest. In f16, bf16 and f8, whose
/// results are rounded once from f32, it is 2 and 1 epsilon. f64 counts as f32, in which OpenVINO and TensorRT compute
/// it. For 8-bit integers that come from rounding real numbers (`quantized`), it is one step, unless most of them are
/// off in the same direction; for other integers it is 0. L is by slice in f32 and f64; larger differences are left to
/// the noise floor.
[[nodiscard]] Tolerance rewrite_tolerance(onnx::ElementType type, bool quantized = false);
/// Returns the tolerance for the outputs of a whole network, whose layers amplify rounding: in f32 relative 1024
/// epsilon (1.2e-4) and 256 epsilon of the largest; in other types the same as rewrite_tolerance.
[[nodiscard]] Tolerance network_tolerance(onnx::ElementType type, bool quantized = false);

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

/// Returns whether a value results from rounding: the output of QuantizeLinear, of another ONNX operator that quantizes
/// its result, or of an operator of Graft, possibly in another shape or order. Other integers, such as indices and
/// classes, are exact.
[[nodiscard]] bool is_quantized(const onnx::Value& value);

/// Returns whether a node of the model rounds real numbers to 8 bits.
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

/// Compares two tensors element by element, in double, and integers exactly. NaN agrees with NaN, an infinity with the
/// same infinity. The element types may differ; the values are compared. Strings and complex numbers are incomparable
/// unless they have the same bytes. With a `floor`, NoiseFloor::factor times the noise of an element is allowed in
/// addition to the tolerance. If the reference's own dimensions depend on rounding, the tensors are compared as a
/// SelectionDifference, whose limits come from the differences between the draws.
[[nodiscard]] Difference compare(const onnx::TensorData& reference, const onnx::TensorData& candidate,
                                 const Tolerance& tolerance, const NoiseFloor* floor = nullptr);

/// The result of pairing the elements of two tensors whose sizes differ along at most one axis.
struct Partners {
  std::int64_t without = 0;          ///< The number of elements of either tensor without a partner in the other.
  std::int64_t nan_on_one_side = 0;  ///< The number of NaN in the second tensor without a NaN as partner in the first.
  std::int64_t finite = 0;           ///< The number of pairs whose elements are finite.
  double largest_difference = 0;     ///< The largest difference between the elements of a pair.
};
[[nodiscard]] Partners find_partners(const onnx::TensorData& reference, const onnx::TensorData& other, std::size_t axis,
                                     const Tolerance& tolerance);

}  // namespace graft::verify

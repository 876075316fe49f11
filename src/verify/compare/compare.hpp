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

/// Returns whether `one`, the difference of an output in one run, is worse than `other`, its difference in another run.
/// A run in which only the noise floor makes the tensors equal is worse than a run within the tolerance.
[[nodiscard]] bool is_worse(const Difference& one, const Difference& other);

/// Returns the tolerance for a rewrite of a few nodes. In f32 it is 64 epsilon (8e-6) relative plus 32 epsilon of the
/// largest element of the element's slices, where epsilon is the distance from 1 to the next number of the type; the
/// noise floor decides on larger differences. In f16, bf16 and f8, whose results are rounded once from f32, it is 2 and
/// 1 epsilon. f64 counts as f32, in which OpenVINO and TensorRT compute it. For 8-bit integers that come from rounding
/// real numbers (`quantized`), it is one step, unless most elements are off in the same direction; for other integers
/// it is 0.
[[nodiscard]] Tolerance rewrite_tolerance(onnx::ElementType type, bool quantized = false);
/// Returns the tolerance for the outputs of a whole network, whose layers amplify rounding errors. In f32 it is 1024
/// epsilon (1.2e-4) relative and 256 epsilon of the largest element; in other types, and for integers, it is that of
/// rewrite_tolerance with the same arguments.
[[nodiscard]] Tolerance network_tolerance(onnx::ElementType type, bool quantized = false);

/// Computes the allowed difference of each element of a reference tensor. The reference must outlive this object.
class ElementTolerance {
 public:
  ElementTolerance(const Tolerance& tolerance, const onnx::TensorData& reference)
      : tolerance_(tolerance), reference_(&reference) {}

  /// Returns the allowed absolute difference of the element at the row-major `position`, whose reference value is
  /// `number`.
  [[nodiscard]] double at(std::int64_t position, double number);

 private:
  Tolerance tolerance_;
  const onnx::TensorData* reference_;
  std::optional<SliceMaxima> largest_;  ///< Computed on first use.
};

/// Returns whether the integers of a value result from rounding real numbers: it is the output of QuantizeLinear, of
/// another ONNX operator that quantizes its result, or of a Graft operator, possibly reshaped or transposed. Other
/// integers, such as indices and classes, are exact.
[[nodiscard]] bool is_quantized(const onnx::Value& value);

/// Returns whether a node of the model rounds real numbers to 8 bits.
[[nodiscard]] bool quantizes(const onnx::Model& model);

/// The narrow type of each value of a main graph that is f16 or bf16 or is computed from such a value. If a value is
/// computed from both types, it is bf16, the coarser one.
using NarrowTypes = std::unordered_map<const onnx::Value*, onnx::ElementType>;
[[nodiscard]] NarrowTypes narrow_types(const onnx::Model& model);
/// Returns the type that determines the rounding error of a value: `own`, its own type, or a narrower type in `narrow`
/// in which a value before it was computed.
[[nodiscard]] onnx::ElementType rounding_type(const NarrowTypes& narrow, const onnx::Value& value,
                                              onnx::ElementType own);

/// Returns the tensor x if `value` is the mean of x, computed by one node and possibly reshaped or transposed
/// afterwards; otherwise null.
[[nodiscard]] const onnx::Value* mean_of(const onnx::Value& value);

/// Returns the largest absolute value of the finite elements, or 0 if there are no finite elements.
[[nodiscard]] double largest_finite(const onnx::TensorData& tensor);

/// Compares two tensors element by element: real numbers in double, integers exactly. NaN equals NaN, and an infinity
/// equals the same infinity. The element types may differ. Strings and complex numbers are incomparable unless they
/// have the same bytes. With a `floor`, NoiseFloor::factor times the noise of an element is allowed in addition to the
/// tolerance. If the reference's dimensions depend on rounding, the tensors are compared as a SelectionDifference, with
/// limits from the differences between the noisy runs.
[[nodiscard]] Difference compare(const onnx::TensorData& reference, const onnx::TensorData& candidate,
                                 const Tolerance& tolerance, const NoiseFloor* floor = nullptr);

/// The result of pairing the elements of two tensors regardless of their order, if the sizes differ along at most one
/// axis.
struct Partners {
  std::int64_t without = 0;          ///< The number of elements of either tensor without a partner in the other.
  std::int64_t nan_on_one_side = 0;  ///< The number of NaN in the second tensor without a NaN as partner in the first.
  std::int64_t finite = 0;           ///< The number of pairs whose elements are finite.
  double largest_difference = 0;     ///< The largest difference between the elements of a pair.
};
[[nodiscard]] Partners find_partners(const onnx::TensorData& reference, const onnx::TensorData& other, std::size_t axis,
                                     const Tolerance& tolerance);

}  // namespace graft::verify

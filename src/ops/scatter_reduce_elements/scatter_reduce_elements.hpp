// ScatterReduceElements: adds elements to the elements that indices select, or reduces them in another way.
#pragma once

#include "core/scatter.hpp"

namespace graft::ops {

using graft::ScatterReduction;

struct ScatterReduceElements {
  static constexpr auto name = "ScatterReduceElements";
  static constexpr int version = 1;
  static constexpr auto doc =
      "y = data; then, for each element of updates in order, the element of y at the same position, but at "
      "indices[position] along the axis, is combined with the update by +, *, min or max. Indices may repeat. Negative "
      "indices count from the end; an update whose index is out of range is ignored. f16 and bf16 are reduced in f32 "
      "and rounded once; integers wrap around; min and max with NaN return the update, so that NaN remains only if it "
      "comes last, as in ONNX Runtime.";
  static constexpr auto source = "ONNX ScatterElements 18; torch.Tensor.scatter_reduce_";
  static constexpr auto why_plugin = "TensorRT-RTX supports scatter only without a reduction";

  ScatterReduction reduction = ScatterReduction::add;
  std::int64_t axis = 0;
  bool deterministic = true;

  static constexpr auto attributes() {
    using Self = ScatterReduceElements;
    return std::tuple{
        required_attribute(
            "reduction", &Self::reduction,
            "the operation that combines updates with data; without a reduction, use TensorRT's own layer"),
        attribute("axis", &Self::axis, "the axis of the indices; negative axes count from the last one"),
        attribute("deterministic", &Self::deterministic,
                  "1 sorts updates by their target and reduces them in order, so that every run computes the same "
                  "bits; 0 allows floating-point values to be added in any order, and in their own type")};
  }
  static constexpr auto ports() {
    return std::array{
        input("data", "T", "any", "a tensor of 1 to 8 dimensions"),
        input("indices", "Tind", "any",
              "the indices along the axis, with the rank of data and not larger than data except along the axis"),
        input("updates", "T", "as indices", "the update for each index"),
        output("y", "T", "as data", "the data after the updates")};
  }
  static constexpr auto types() { return scatter_type_constraints(); }
  [[nodiscard]] static OnnxForm onnx_form() { return {.name = "ScatterElements", .needs_override = true}; }
  [[nodiscard]] std::vector<Shape> infer_shapes(std::span<const Shape> inputs) const;
  [[nodiscard]] Status check(const Problem& problem) const;
  [[nodiscard]] std::size_t workspace(const Problem& problem) const {
    return scatter_workspace(reduction, deterministic, problem.inputs[0].dtype, sizes(problem));
  }
  [[nodiscard]] static ScatterSizes sizes(const Problem& problem) {
    return {.rows = problem.inputs[0].extents.element_count(),
            .slice = 1,
            .updates = problem.inputs[1].extents.element_count()};
  }
  /// Returns the axis counted from the front.
  [[nodiscard]] int axis_of(int rank) const { return static_cast<int>(axis < 0 ? axis + rank : axis); }
};

[[nodiscard]] Status run(const ScatterReduceElements& op, const Problem& problem, const Buffers& buffers,
                         const CpuContext& context);
[[nodiscard]] std::span<const Variant<ScatterReduceElements>> cuda_kernels(const ScatterReduceElements& op);

}  // namespace graft::ops

// ScatterReduceND: adds slices to the slices of data that indices select, or reduces them in another way.
#pragma once

#include <stdexcept>

#include "core/scatter.hpp"

namespace graft::ops {

using graft::ScatterReduction;

/// The operator ScatterReduceND. It is not named ScatterND, because TensorRT-RTX 1.7.1 casts the i64 inputs of every
/// plugin of that name to i32.
struct ScatterReduceND {
  static constexpr auto name = "ScatterReduceND";
  static constexpr int version = 1;
  static constexpr auto doc =
      "y = data; then, for each update i in order, y[indices[i]] = y[indices[i]] + updates[i], or *, min, max. Indices "
      "may repeat. Negative indices count from the end; an update whose index is out of range is ignored. f16 and bf16 "
      "are reduced in f32 and rounded once; integers wrap around; min and max with NaN return the update, so that NaN "
      "remains only if it comes last, as in ONNX Runtime.";
  static constexpr auto source = "ONNX ScatterND 18; torch.Tensor.index_put_ with accumulate";
  static constexpr auto why_plugin = "TensorRT-RTX supports scatter only without a reduction";

  ScatterReduction reduction = ScatterReduction::add;
  bool deterministic = true;

  static constexpr auto attributes() {
    return std::tuple{
        required_attribute(
            "reduction", &ScatterReduceND::reduction,
            "the operation that combines updates with data; without a reduction, use TensorRT's own layer"),
        attribute("deterministic", &ScatterReduceND::deterministic,
                  "1 sorts updates by their index and reduces them in order, so that every run computes the same bits; "
                  "0 allows floating-point values to be added in any order, and in their own type")};
  }
  static constexpr auto ports() {
    return std::array{input("data", "T", "any", "a tensor of 1 to 8 dimensions"),
                      input("indices", "Tind", "...,depth", "the indices into the first `depth` dimensions of data"),
                      input("updates", "T", "...,rest", "the slice for each index"),
                      output("y", "T", "as data", "the data after the updates")};
  }
  static constexpr auto types() { return scatter_type_constraints(); }
  [[nodiscard]] static OnnxForm onnx_form() { return {.name = "ScatterND", .needs_override = true}; }
  static std::vector<Shape> infer_shapes(std::span<const Shape> inputs) {
    if (inputs[0].empty() || inputs[1].empty()) {
      throw std::invalid_argument("`data` or `indices` is a scalar; both must have 1 to 8 dimensions");
    }
    return {inputs[0]};
  }
  [[nodiscard]] static Status check(const Problem& problem);
  [[nodiscard]] std::size_t workspace(const Problem& problem) const {
    return scatter_workspace(reduction, deterministic, problem.inputs[0].dtype, sizes(problem));
  }
  [[nodiscard]] static ScatterSizes sizes(const Problem& problem);
};

[[nodiscard]] Status run(const ScatterReduceND& op, const Problem& problem, const Buffers& buffers,
                         const CpuContext& context);
[[nodiscard]] std::span<const Variant<ScatterReduceND>> cuda_kernels(const ScatterReduceND& op);

}  // namespace graft::ops

// LargestK: the k largest or smallest elements along an axis, and their indices.
#pragma once

#include <stdexcept>

#include "graft/operator/define_operator.hpp"

namespace graft::ops {

struct LargestK {
  static constexpr auto name = "LargestK";
  static constexpr int version = 1;
  static constexpr auto doc =
      "values = the k largest elements of x along an axis, or the k smallest; of equal elements the first comes first. "
      "indices = their positions along the axis. NaN is larger than every number; 0 and -0 are equal.";
  static constexpr auto source = "ONNX TopK 11; torch.topk";
  static constexpr auto why_plugin = "TensorRT's TopK supports a k of at most 3840";

  std::int64_t k = 1;
  std::int64_t axis = -1;
  bool largest = true;
  bool sorted = true;

  static constexpr auto attributes() {
    using Self = LargestK;
    return std::tuple{
        attribute("k", &Self::k, "the number of elements, at most the length of the axis", at_least(0)),
        attribute("axis", &Self::axis, "the axis; negative axes count from the last one"),
        attribute("largest", &Self::largest, "1 selects the largest elements, 0 the smallest"),
        attribute("sorted", &Self::sorted, "whether the results must be sorted; the operator also sorts them with 0")};
  }
  static constexpr auto ports() {
    return std::array{
        input("x", "T", "any", "a tensor of 1 to 8 dimensions"),
        output("values", "T", "as x, k along the axis", "the selected elements, the largest or the smallest first"),
        output("indices", DType::i64, "as values", "the positions of the values along the axis")};
  }
  static constexpr auto types() {
    using enum DType;
    return std::array{TypeConstraint("T", f32, f16, bf16, i32, i64)};
  }
  [[nodiscard]] static OnnxForm onnx_form() { return {.name = "TopK", .inputs = {"x", "k"}, .needs_override = true}; }
  [[nodiscard]] std::vector<Shape> infer_shapes(std::span<const Shape> inputs) const {
    Shape result = inputs[0];
    result[static_cast<std::size_t>(axis_of(static_cast<int>(result.size())))] = k;
    return {result, result};
  }
  [[nodiscard]] Status check(const Problem& problem) const {
    const Extents& x = problem.inputs[0].extents;
    const int along = axis_of(x.rank());
    if (k <= x[along]) return {};
    return invalid_argument("LargestK: `k` is " + std::to_string(k) + "; it must be at most the length of axis " +
                            std::to_string(along) + " of x, " + std::to_string(x[along]));
  }
  [[nodiscard]] std::size_t workspace(const Problem& problem) const;
  [[nodiscard]] std::optional<Function> function(const FunctionInputs& inputs) const;
  [[nodiscard]] std::optional<std::string> native_form(const FunctionInputs& inputs) const;

  /// Returns the axis counted from 0. Throws std::invalid_argument if x has no such axis.
  [[nodiscard]] int axis_of(int rank) const {
    if (axis >= -rank && axis < rank) return static_cast<int>(axis < 0 ? axis + rank : axis);
    throw std::invalid_argument("`axis` is " + std::to_string(axis) + ", but x has " + std::to_string(rank) +
                                " dimensions");
  }
};

[[nodiscard]] Status run(const LargestK& op, const Problem& problem, const Buffers& buffers, const CpuContext& context);
[[nodiscard]] std::span<const Variant<LargestK>> cuda_kernels(const LargestK& op);

}  // namespace graft::ops

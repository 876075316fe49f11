// NonZero: the indices of the elements that are not zero. Their number depends on the data.
#pragma once

#include <stdexcept>

#include "graft/operator/define_operator.hpp"

namespace graft::ops {

struct NonZero {
  static constexpr auto name = "NonZero";
  static constexpr int version = 1;
  static constexpr auto doc =
      "y[:, i] = the index of the i-th element of x that is not zero, in row-major order. NaN counts as not zero, -0 "
      "as zero.";
  static constexpr auto source = "ONNX NonZero; numpy.nonzero";
  static constexpr auto why_plugin = "TensorRT-RTX has no layer whose output size depends on data";

  static constexpr auto attributes() { return std::tuple{}; }
  static constexpr auto ports() {
    return std::array{
        input("x", "T", "any", "a tensor of 1 to 8 dimensions"),
        output("y", DType::i64, "rank,count", "the indices of the elements that are not zero, one column each"),
        size_output("count", "the number of results")};
  }
  static constexpr auto types() {
    using enum DType;
    return std::array{TypeConstraint("T", f32, f16, bf16, i32, i64)};
  }
  [[nodiscard]] static OnnxForm onnx_form() { return {.name = "NonZero"}; }
  /// Infers the shapes of the indices and of `count`. The upper bound of `count` is the number of elements of x.
  static std::vector<Shape> infer_shapes(std::span<const Shape> inputs) {
    if (inputs[0].empty()) throw std::invalid_argument("`x` is a scalar; it must have 1 to 8 dimensions");
    Dim elements = 1;
    for (const Dim& dim : inputs[0]) elements = elements * dim;
    return {{static_cast<std::int64_t>(inputs[0].size()), data_size(1, ceil_div(elements, 2), elements)}, {}};
  }
  [[nodiscard]] static std::size_t workspace(const Problem& problem);
  [[nodiscard]] static std::optional<Function> function(const FunctionInputs& /*inputs*/) {
    return Function{name,
                    "is_set = Cast<to=9>(x)\n"
                    "y = NonZero(is_set)\n"
                    "ones = Cast<to=7>(is_set)\n"
                    "count = ReduceSum<keepdims=0>(ones)"};
  }

  // The number of words in a tile of elements, which is stored as bits: one word for each thread of a block.
  static constexpr std::int64_t tile_words = 256;
  static constexpr std::int64_t tile_elements = tile_words * 32;
};

/// Returns the size of the workspace in bytes. The workspace contains the number of elements that are not zero, and for
/// each tile that number and a bit for each element.
inline std::size_t NonZero::workspace(const Problem& problem) {
  const std::int64_t tiles = (problem.inputs[0].extents.element_count() + tile_elements - 1) / tile_elements;
  constexpr std::size_t tile_bytes = sizeof(std::int64_t) + static_cast<std::size_t>(tile_words) * sizeof(unsigned);
  return sizeof(std::int64_t) + static_cast<std::size_t>(tiles) * tile_bytes;
}

[[nodiscard]] Status run(const NonZero& op, const Problem& problem, const Buffers& buffers, const CpuContext& context);
[[nodiscard]] std::span<const Variant<NonZero>> cuda_kernels(const NonZero& op);

}  // namespace graft::ops

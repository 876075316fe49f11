// The tensors from which a tensor is computed by moving elements and by adding or multiplying with a single number.
#pragma once

#include <vector>

#include "onnx/model.hpp"

namespace graft::passes::deformable_attention {

/// A tensor x from which another tensor is computed: the elements of the other tensor are scale * x + offset.
struct Ancestor {
  onnx::Value* value = nullptr;
  double scale = 1;
  double offset = 0;
};

/// Returns whether a node only moves elements: Flatten, Gather, Identity, Reshape, Slice, Split, Squeeze, Transpose,
/// Unsqueeze.
[[nodiscard]] bool moves_elements(const onnx::Node& node);

/// Returns the input of a node that adds, subtracts, multiplies or divides by one constant number, with the scale and
/// the offset of the node. For any other node, `value` of the result is null.
[[nodiscard]] Ancestor scaled_input(const onnx::Node& node);

/// Returns `of` and the tensors from which it is computed, the nearest first: the inputs of nodes that move elements
/// and, if `is_scaled` is true, of nodes that scaled_input() accepts. The elements of the tensor in `of` are scale * x
/// + offset for each result x.
[[nodiscard]] std::vector<Ancestor> ancestors_of(const Ancestor& of, bool is_scaled = false);

}  // namespace graft::passes::deformable_attention

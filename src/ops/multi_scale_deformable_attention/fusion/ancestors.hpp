// Which tensors a tensor was made of by moving elements and by sums and products with one number.
#pragma once

#include <vector>

#include "onnx/model.hpp"

namespace graft::passes::deformable_attention {

/// A tensor that another one was made of: the other's elements are scale * x + offset of its own.
struct Ancestor {
  onnx::Value* value = nullptr;
  double scale = 1;
  double offset = 0;
};

[[nodiscard]] bool moves_elements(const onnx::Node& node);

/// What a node that adds one number, or multiplies by it, makes its result of; no value for any other node.
[[nodiscard]] Ancestor scaled_input(const onnx::Node& node);

/// A tensor, what it was made of by movements and, where `is_scaled`, by sums and products with one number, and so on.
[[nodiscard]] std::vector<Ancestor> ancestors_of(const Ancestor& of, bool is_scaled = false);

}  // namespace graft::passes::deformable_attention

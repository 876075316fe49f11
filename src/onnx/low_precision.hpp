// The element types of networks in low precision.
#pragma once

#include <optional>

#include "onnx/tensor_data.hpp"

namespace graft::onnx {

/// Returns whether a type is f16 or bf16; false if it is unknown.
[[nodiscard]] inline bool is_low_precision(std::optional<ElementType> type) {
  return type == ElementType::f16 || type == ElementType::bf16;
}

}  // namespace graft::onnx

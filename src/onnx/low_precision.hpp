// The element types that a network in low precision computes in.
#pragma once

#include <optional>

#include "onnx/tensor_data.hpp"

namespace graft::onnx {

/// f16 or bf16; false where the type is not known.
[[nodiscard]] inline bool is_low_precision(std::optional<ElementType> type) {
  return type == ElementType::f16 || type == ElementType::bf16;
}

}  // namespace graft::onnx

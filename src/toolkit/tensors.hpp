// Conversion between the tensors of the public interface and the tensors of models.
#pragma once

#include <string>

#include "graft/toolkit/tensor.hpp"
#include "runtime/engine.hpp"

namespace graft::toolkit {

/// Returns tensors that share the memory of the views. Throws Error, with a message that begins with `what`, for a view
/// whose data do not have the size of its shape.
[[nodiscard]] runtime::TensorMap to_internal(const TensorViews& tensors, const std::string& what);

/// Returns whether the public API has tensors of this type (TensorType).
[[nodiscard]] bool is_tensor_type(onnx::ElementType type);

/// Returns `tensors` or `views`, whichever are not empty, as tensors that share their memory. Throws Error, with a
/// message that begins with `what`, if both are not empty, and for data that do not have the size of their shape.
[[nodiscard]] runtime::TensorMap to_internal(const Tensors& tensors, const TensorViews& views, const std::string& what);

/// Returns copies of the tensors. Throws Error, with a message that begins with `what`, for a tensor of a type that
/// TensorType does not have.
[[nodiscard]] Tensors to_public(const runtime::TensorMap& tensors, const std::string& what);

/// Returns views of the tensors, which do not own the memory. Throws Error, with a message that begins with `what`, for
/// a tensor of a type that TensorType does not have.
[[nodiscard]] TensorViews views_of(const runtime::TensorMap& tensors, const std::string& what);

}  // namespace graft::toolkit

// Inlines the functions of a model to look at the nodes in their bodies.
#pragma once

#include <set>

#include "onnx/model.hpp"

namespace graft::inspect {

/// Returns the keys of the functions of the model that its nodes call and whose bodies TensorRT builds. Functions for
/// which a loaded library has an operator are not included.
[[nodiscard]] std::set<onnx::FunctionKey> called_functions(const onnx::Model& model);

/// Inlines the calls of these functions, stores in the metadata of each inlined node (onnx::call_note) the call from
/// which it comes, and infers types and shapes. Throws Error if a function cannot be inlined, for example because of
/// its opset.
void inline_bodies(onnx::Model& model, const std::set<onnx::FunctionKey>& functions);

}  // namespace graft::inspect

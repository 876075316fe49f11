// Inlines the functions of a model to look at the nodes in their bodies.
#pragma once

#include <set>

#include "onnx/model.hpp"

namespace graft::inspect {

/// Returns the functions that nodes call and that are not operators, which run as their bodies.
[[nodiscard]] std::set<onnx::FunctionKey> called_functions(const onnx::Model& model);

/// Inlines these functions, notes in each of their nodes the call that it comes from (onnx::call_note), and infers
/// types and shapes. Throws Error if a function cannot be inlined, as with incompatible opsets.
void inline_bodies(onnx::Model& model, const std::set<onnx::FunctionKey>& functions);

}  // namespace graft::inspect

// Distinguishes calls of functions that are operators from other calls.
#pragma once

#include <string>
#include <vector>

#include "onnx/model.hpp"

namespace graft::onnx {

/// Returns whether the function is not an operator, of Graft or of a loaded library, so that the body in the file may
/// replace a call of it. Meant for InlineOptions::which.
[[nodiscard]] bool is_plain_call(const FunctionKey& function);

/// Returns the nodes, including those in functions that are called, that stand for an operator which no loaded library
/// contains. Only the function in the file can compute them.
[[nodiscard]] std::vector<const Node*> calls_without_operator(const Model& model);
/// Returns the name of the operator for which such a node stands.
[[nodiscard]] std::string called_operator(const Node& node);

}  // namespace graft::onnx

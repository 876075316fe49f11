// Tells calls of functions that are operators from other calls.
#pragma once

#include <string>
#include <vector>

#include "onnx/model.hpp"

namespace graft::onnx {

/// Returns whether a call of this function is not an operator, Graft's or of a loaded library, so that the body in the
/// file may replace the call. For InlineOptions::which.
[[nodiscard]] bool is_plain_call(const FunctionKey& function);

/// Returns the nodes, also in functions that are called, that stand for an operator which no loaded library has: only
/// the function in the file can compute them.
[[nodiscard]] std::vector<const Node*> calls_without_operator(const Model& model);
/// Returns the name of the operator for which such a node stands.
[[nodiscard]] std::string called_operator(const Node& node);

}  // namespace graft::onnx

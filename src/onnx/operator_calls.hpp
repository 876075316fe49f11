// Distinguishes calls of functions that are operators from other calls.
#pragma once

#include <string>
#include <vector>

#include "onnx/model.hpp"

namespace graft::onnx {

/// Returns whether a function is neither an operator of Graft nor one of a loaded library, so that calls of it may be
/// replaced with the body in the file. Meant for InlineOptions::which.
[[nodiscard]] bool is_plain_call(const FunctionKey& function);

/// Returns the nodes of the domain graft whose operator is in no loaded library, but that call a function in the file.
/// Only that function can compute such a node. Nodes inside functions that are called are included.
[[nodiscard]] std::vector<const Node*> calls_without_operator(const Model& model);
/// Returns the name of the operator of a node that calls_without_operator() returns. It differs from the function's
/// name if the node has the metadata `graft.operator`.
[[nodiscard]] std::string called_operator(const Node& node);

}  // namespace graft::onnx

// Which calls of functions are operators.
#pragma once

#include <string>
#include <vector>

#include "onnx/model.hpp"

namespace graft::onnx {

/// Whether a call of such a function is no operator, and may give way to the body that the file has: for
/// InlineOptions::which. What stands for an operator, Graft's or of a library of somebody's own, is left as it is.
[[nodiscard]] bool is_plain_call(const FunctionKey& function);

/// The nodes, also those inside functions that are called, which stand for an operator that no loaded library has: of
/// it there is the function in the file alone.
[[nodiscard]] std::vector<const Node*> calls_without_operator(const Model& model);
/// What such a node calls its operator.
[[nodiscard]] std::string called_operator(const Node& node);

}  // namespace graft::onnx

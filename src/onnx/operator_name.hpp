// Returns the name of a node's operator, with its domain.
#pragma once

#include <string>

#include "onnx/model.hpp"

namespace graft::onnx {

/// Returns a name such as "Conv" or "graft::L2Normalize". For a call of an operator's function, returns the operator's
/// own name.
[[nodiscard]] std::string qualified_operator_name(const Node& node);

}  // namespace graft::onnx

// The name of a node's operator, with its domain.
#pragma once

#include <string>

#include "onnx/model.hpp"

namespace graft::onnx {

/// Returns a name such as "Conv" or "graft::L2Normalize". A call of an operator's function has the operator's own name.
[[nodiscard]] std::string qualified_operator_name(const Node& node);

}  // namespace graft::onnx

// Element types through the text of a function.
#pragma once

#include <optional>
#include <string>

#include "onnx/model.hpp"

namespace graft::onnx {

/// Infers the types of the node's outputs from those of its inputs, by the rules of infer_shapes. What is wrong with
/// the types of its inputs, by ONNX's schemas, and how to mend it; nothing where one that is not known may be right.
[[nodiscard]] std::optional<std::string> type_fault(Node& node);

}  // namespace graft::onnx

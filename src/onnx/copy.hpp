// Copies of parts of a model: one value, one node, or all but the nodes. See Model::clone for the whole.
#pragma once

#include <functional>

#include "onnx/model.hpp"

namespace graft::onnx {

/// A copy of a value in `into`, under the same name; not what makes or reads it.
Value* copy_value(const Value& value, Graph& into);

/// A copy of a node at the end of `into`, with the sub-graphs in its attributes; `look_up` gives the value to use
/// instead of each that it reads or makes.
Node* copy_node(const Node& node, Graph& into, const std::function<Value*(Value*)>& look_up);

/// Functions, operator sets and descriptions, with an empty main graph.
[[nodiscard]] Model clone_without_nodes(const Model& model);

}  // namespace graft::onnx

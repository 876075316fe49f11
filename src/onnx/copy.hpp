// Copies parts of a model: one value, one node, or everything but the nodes. Model::clone copies a whole model.
#pragma once

#include <functional>

#include "onnx/model.hpp"

namespace graft::onnx {

/// Copies what is known of a value, but not its name, its producer and its uses.
void copy_facts(const Value& from, Value& to);

/// Copies a value to `into` under the same name, without its producer and its uses.
Value* copy_value(const Value& value, Graph& into);

/// Copies a node to the end of `into`, with the sub-graphs in its attributes. `look_up` returns the value to use
/// instead of each value that the node reads or computes.
Node* copy_node(const Node& node, Graph& into, const std::function<Value*(Value*)>& look_up);

/// Copies functions, imports and descriptions of a model; the main graph of the copy is empty.
[[nodiscard]] Model clone_without_nodes(const Model& model);

}  // namespace graft::onnx

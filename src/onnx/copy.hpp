// Copies parts of a model: one value, one node, or everything except the nodes. Model::clone copies a whole model.
#pragma once

#include <functional>

#include "onnx/model.hpp"

namespace graft::onnx {

/// Copies the type, the shape, the constant data and the preserved protobuf fields of a value, but not its name,
/// producer and uses.
void copy_facts(const Value& from, Value& to);

/// Copies a value into the graph `into` under the same name, without its producer and uses.
Value* copy_value(const Value& value, Graph& into);

/// Copies a node to the end of `into`, with the subgraphs in its attributes. `look_up` maps each value that the node
/// reads or computes to the value that the copy uses.
Node* copy_node(const Node& node, Graph& into, const std::function<Value*(Value*)>& look_up);

/// Copies functions, imports and descriptions of a model; the main graph of the copy is empty.
[[nodiscard]] Model clone_without_nodes(const Model& model);

}  // namespace graft::onnx

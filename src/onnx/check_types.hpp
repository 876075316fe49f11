// Checks what the other rules do not look at: the element types of the inputs of nodes, against the schemas of ONNX,
// and whether the model has outputs.
#pragma once

#include <functional>

#include "onnx/model.hpp"

namespace graft::onnx {

/// Returns whether a node runs although its schema does not allow the types of its inputs. The node is in the main
/// graph of a copy of the model, in which types are inferred; a node in a sub-graph is represented by the node that
/// holds it.
using AcceptsTypes = std::function<bool(const Model& inferred, const Node& node)>;

/// Throws Error for a model without outputs, which TensorRT does not build, and, naming file, node, inputs and types,
/// for the first node of ai.onnx, in the graph or in a sub-graph, whose inputs have types that its schema does not
/// allow. The types are inferred in a copy; an input of unknown type is allowed. Before opset 13, only inputs that have
/// to be of one type are checked. Nodes that `accepts` accepts are passed over. The call costs one shape inference.
void check_types_and_outputs(const Model& model, const AcceptsTypes& accepts = nullptr);

}  // namespace graft::onnx

// Checks what the other rules do not look at: the element types of the inputs of nodes, against the schemas of ONNX,
// and whether the model has outputs.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "onnx/model.hpp"

namespace graft::onnx {

/// Returns whether a node runs although its schema does not allow the types of its inputs. The node is in the main
/// graph of a model in which types are inferred; a node in a sub-graph is represented by the node that holds it.
using AcceptsTypes = std::function<bool(const Model& inferred, const Node& node)>;

struct TypeFault {
  std::size_t node = 0;  ///< The position in the order of Graph::for_each_node: nodes in sub-graphs may share names.
  std::string message;   ///< Names file, node, inputs and types.
};

/// Returns the nodes of ai.onnx, in the graph and in sub-graphs, whose inputs have types that their schemas do not
/// allow. Types must be inferred; an input of unknown type is allowed. Before opset 13, only inputs that have to be of
/// one type are checked. Nodes that `accepts` accepts are passed over.
[[nodiscard]] std::vector<TypeFault> find_type_faults(const Model& inferred, const AcceptsTypes& accepts = nullptr);

/// Returns the next step after an error about an input of type string, which names up to three nodes that read the
/// input and the number of the others.
[[nodiscard]] std::string step_for_strings(const Model& model, const Value& input);

/// Throws Error for a model without outputs, which TensorRT does not build.
void check_has_outputs(const Model& model);

/// Throws the Error of check_has_outputs, and Error for the first of find_type_faults in a copy with inferred types.
void check_types_and_outputs(const Model& model, const AcceptsTypes& accepts = nullptr);

}  // namespace graft::onnx

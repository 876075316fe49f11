// Checks the element types of nodes' inputs against the schemas of ONNX, and whether the model has outputs. Shape
// inference does not check these.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "onnx/model.hpp"

namespace graft::onnx {

/// Returns whether a runtime accepts a node although its schema does not allow the types of its inputs. The node is in
/// the main graph of a model with inferred types; a node in a subgraph is represented by the node that contains the
/// subgraph.
using AcceptsTypes = std::function<bool(const Model& inferred, const Node& node)>;

struct TypeFault {
  /// The index of the node in the order of Graph::for_each_node. Names are not sufficient, because nodes in subgraphs
  /// may share them.
  std::size_t node = 0;
  std::string message;  ///< The message, which names file, node, inputs and types.
};

/// Returns the nodes of ai.onnx, in the graph and in subgraphs, whose inputs have types that their schemas do not
/// allow. Types must be inferred first; an input of unknown type is allowed. Before opset 13, only inputs that must
/// have the same type are checked. Nodes for which `accepts` returns true are skipped; null skips no node.
[[nodiscard]] std::vector<TypeFault> find_type_faults(const Model& inferred, const AcceptsTypes& accepts = nullptr);

/// Returns the next step for an error about a string input. The step names up to three nodes that read the input, and
/// the number of other readers.
[[nodiscard]] std::string step_for_strings(const Model& model, const Value& input);

/// Throws Error for a model without outputs, because TensorRT does not build such a model.
void check_has_outputs(const Model& model);

/// Throws the Error of check_has_outputs, and Error for the first fault that find_type_faults finds, with the same
/// `accepts`, in a copy with inferred types.
void check_types_and_outputs(const Model& model, const AcceptsTypes& accepts = nullptr);

}  // namespace graft::onnx

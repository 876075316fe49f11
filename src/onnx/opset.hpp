// Raises the opset of a model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graft/node_ref.hpp"
#include "onnx/model.hpp"

namespace graft::onnx {

/// The opset in which Graft's function bodies are written, and on which passes can rely after upgrade_opset.
inline constexpr std::int64_t working_opset = 17;
/// The first opset with f8; networks in f8 are raised to it.
inline constexpr std::int64_t f8_opset = 19;
/// The first opset in which nearly all ONNX operators have bf16; networks in bf16 are raised to it if their nodes need
/// it.
inline constexpr std::int64_t bf16_opset = 22;
/// The IR version that a file with bf16_opset must have.
inline constexpr std::int64_t bf16_ir_version = 10;

/// A node of the main graph or of its sub-graphs that had to be rewritten.
struct RaisedNode {
  NodeRef node;                      ///< The node before the change.
  std::vector<std::string> inputs;   ///< Names of the inputs that are not constant.
  std::vector<std::string> outputs;  ///< The names of the outputs that are used. Inputs and outputs keep their names.
  /// Whether other operators compute the outputs now; false if the only change is that attributes became inputs.
  bool computed_anew = false;
};

/// Rewrites the nodes of ai.onnx, in the main graph and in functions, so that the model has the same meaning in opset
/// `version`: attributes that became inputs, Softmax's axis, Upsample, Resize and other changes. Does not change a
/// newer model. Returns the rewritten nodes outside functions. Throws Error naming a node that has no equivalent in the
/// newer opset; the model is then unchanged. If anything is raised, pointers to the model's nodes and values become
/// invalid.
std::vector<RaisedNode> upgrade_opset(Model& model, std::int64_t version = working_opset);

/// Rewrites the nodes of a graph, whose main graph or function imports an older opset, for opset `version`, and changes
/// the import. Returns the rewritten nodes. If `constants_as_nodes` is true, new constants are nodes, as required in
/// the body of a function, which has no initializers.
std::vector<RaisedNode> raise_graph_opset(Graph& graph, std::int64_t version, bool constants_as_nodes);

/// Adds to a node of ai.onnx the attributes that it omits and whose default in `opset`, the opset of the node, differs
/// from the default in a newer opset. The value 0 stands for the newest opset.
void write_old_defaults(Node& node, std::int64_t opset);

}  // namespace graft::onnx

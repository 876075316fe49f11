// Raising a model's operator set.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graft/node_ref.hpp"
#include "onnx/model.hpp"

namespace graft::onnx {

/// The operator set that Graft's function bodies are written in, and that passes may count on after upgrade_opset.
inline constexpr std::int64_t working_opset = 17;
/// The first one that has f8; networks in f8 are raised to it.
inline constexpr std::int64_t f8_opset = 19;
/// Of ONNX's operators nearly all have bf16 from here on; networks in bf16 are raised to it where their nodes need it.
inline constexpr std::int64_t bf16_opset = 22;
/// Of ONNX's format, for files in that operator set.
inline constexpr std::int64_t bf16_ir_version = 10;

/// A node of the main graph or of its sub-graphs that had to be rewritten.
struct RaisedNode {
  NodeRef node;                      ///< As it was before.
  std::vector<std::string> inputs;   ///< That are not constant, by name, and the outputs that are used.
  std::vector<std::string> outputs;  ///< Both keep their names.
  bool computed_anew = false;        ///< Other operators do the work now. False where attributes became inputs.
};

/// Rewrites the nodes of ai.onnx, in the main graph and in functions, so that the model means the same in operator set
/// `version`: attributes that became inputs, Softmax's axis, Upsample, Resize and what else changed. A newer model is
/// left alone. Throws Error naming a node that has no equal in the newer set; then the model is as it was. Where
/// anything is raised, pointers to the model's nodes and values are no longer valid.
std::vector<RaisedNode> upgrade_opset(Model& model, std::int64_t version = working_opset);

/// The same for one graph whose root imports an older set; `constants_as_nodes` in the body of a function, which holds
/// no initializers. The import is changed too.
std::vector<RaisedNode> raise_graph_opset(Graph& graph, std::int64_t version, bool constants_as_nodes);

/// Writes the attributes of a node of ai.onnx whose absence means something else in a newer operator set than in its
/// own, `opset`; 0: the newest.
void write_old_defaults(Node& node, std::int64_t opset);

}  // namespace graft::onnx

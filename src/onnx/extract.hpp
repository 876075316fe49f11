// Cuts a region out of a graph, as a model that runs on its own.
#pragma once

#include <functional>
#include <vector>

#include "onnx/model.hpp"

namespace graft::onnx {

/// Everything between `inputs` and `outputs`: the nodes that the outputs need, going back to the inputs and to
/// constants. The inputs and outputs keep their names, types and shapes; functions that are called come along. Throws
/// Error if an output depends on a value that is neither an input nor a constant, naming it, or if an input's element
/// type is unknown (run infer_shapes first).
[[nodiscard]] Model extract(const Model& model, const std::vector<const Value*>& inputs,
                            const std::vector<const Value*>& outputs);

/// These nodes of the main graph, with the constants they read. What else they read becomes an input; what others read
/// of them, and what is not read, an output. An output of a node that is not read stays unused where another one is
/// read. Throws Error like `extract`.
[[nodiscard]] Model extract_nodes(const Model& model, const std::vector<const Node*>& nodes);

/// The values of its own graph that a node reads, also in its sub-graphs.
[[nodiscard]] std::vector<const Value*> values_read_by(const Node& node);

/// The nodes that lie between some values and others, and where they begin.
struct GraphRegion {
  std::vector<const Node*> nodes;    ///< The one that gives the last output comes last.
  std::vector<const Value*> inputs;  ///< Not constant; each once.
};

/// What the outputs are computed from, back to the graph's inputs and to the values where `ends_at` says so; it is
/// not asked of the outputs themselves.
[[nodiscard]] GraphRegion region_before(const std::vector<const Value*>& outputs,
                                        const std::function<bool(const Value&)>& ends_at);

}  // namespace graft::onnx

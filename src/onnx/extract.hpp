// Extracts a region of a graph as a model that runs on its own.
#pragma once

#include <functional>
#include <vector>

#include "onnx/model.hpp"

namespace graft::onnx {

/// Returns the part of a model between `inputs` and `outputs`: the nodes that the outputs depend on, back to the inputs
/// and to constants. Inputs and outputs keep their names, types and shapes; functions that are called are included.
/// Throws Error naming the value if an output depends on a value that is neither an input nor a constant, or if the
/// element type of an input is unknown (run infer_shapes first).
[[nodiscard]] Model extract(const Model& model, const std::vector<const Value*>& inputs,
                            const std::vector<const Value*>& outputs);

/// Returns a model of these nodes of the main graph and the constants that they read. Other values that they read
/// become inputs. Values that other nodes or the graph's outputs read become outputs; if all outputs of a node are
/// unused, the first one becomes an output. Throws Error as `extract` does.
[[nodiscard]] Model extract_nodes(const Model& model, const std::vector<const Node*>& nodes);

/// Returns the values that a node reads, itself or in its subgraphs, and that belong to the node's own graph.
[[nodiscard]] std::vector<const Value*> values_read_by(const Node& node);

/// A region of a graph: the nodes that compute some values, and the values that these nodes read from outside.
struct GraphRegion {
  /// The nodes of the region. The last one computes the first output; the other nodes need not be in topological order.
  std::vector<const Node*> nodes;
  /// The values that the region reads from outside, without constants and duplicates.
  std::vector<const Value*> inputs;
};

/// Returns the nodes that compute `outputs`, back to the graph's inputs and to the values for which `ends_at` returns
/// true. `ends_at` is not called for the outputs themselves.
[[nodiscard]] GraphRegion region_before(const std::vector<const Value*>& outputs,
                                        const std::function<bool(const Value&)>& ends_at);

}  // namespace graft::onnx

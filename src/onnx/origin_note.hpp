// Records on a node which tensors of the original network it stands for.
#pragma once

#include <string>
#include <vector>

#include "onnx/model.hpp"

namespace graft::onnx {

/// Returns the tensors of the original network that were outputs of the nodes that this node replaced. Empty for a node
/// of the original network.
[[nodiscard]] std::vector<std::string> origin_of(const Node& node);

/// Records that `node` replaced other nodes. `tensors` are the results of stands_for() for the replaced nodes.
void note_origin(Node& node, const std::vector<std::string>& tensors);

/// Returns the tensors of the original network that this node computes: the result of origin_of() or, if that is empty,
/// the names of the node's own outputs.
[[nodiscard]] std::vector<std::string> stands_for(const Node& node);

}  // namespace graft::onnx

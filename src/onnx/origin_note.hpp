// Records on a node which tensors of the original network it stands for.
#pragma once

#include <string>
#include <vector>

#include "onnx/model.hpp"

namespace graft::onnx {

/// Returns the tensors of the original network that were outputs of the nodes that this node replaced. Empty for a node
/// of the original network.
[[nodiscard]] std::vector<std::string> origin_of(const Node& node);

/// Records that a node replaced other nodes, whose original tensors are `tensors`: the results of stands_for() for the
/// replaced nodes.
void note_origin(Node& node, const std::vector<std::string>& tensors);

/// Returns the original tensors of a node or, if no original tensors are recorded, its own outputs.
[[nodiscard]] std::vector<std::string> stands_for(const Node& node);

}  // namespace graft::onnx

// Records on a node which tensors of the original network it stands for.
#pragma once

#include <string>
#include <vector>

#include "onnx/model.hpp"

namespace graft::onnx {

/// Returns the tensors of the network before all rewrites that were outputs of the nodes which this node replaced.
/// Empty for a node of that network.
[[nodiscard]] std::vector<std::string> origin_of(const Node& node);

/// Records that a node replaced others: `tensors` are their outputs or, if they have an origin, that origin.
void note_origin(Node& node, const std::vector<std::string>& tensors);

/// Returns the origin of a node or, if it has none, its own outputs.
[[nodiscard]] std::vector<std::string> stands_for(const Node& node);

}  // namespace graft::onnx

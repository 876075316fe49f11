// What a node that a rewrite made stands for, written on the node itself.
#pragma once

#include <string>
#include <vector>

#include "onnx/model.hpp"

namespace graft::onnx {

/// The tensors of the network before all rewrites that the nodes gave in whose place this node came. Empty for a node
/// of that network.
[[nodiscard]] std::vector<std::string> origin_of(const Node& node);

/// Writes down that a node came in the place of others: their outputs, or what they themselves stand for.
void note_origin(Node& node, const std::vector<std::string>& tensors);

/// What a node stands for: its origin, or its own outputs.
[[nodiscard]] std::vector<std::string> stands_for(const Node& node);

}  // namespace graft::onnx

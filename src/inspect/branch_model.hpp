// A branch of If, or the body of Loop or Scan, as a model of its own.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "onnx/model.hpp"

namespace graft::inspect {

/// The model with the nodes of one sub-graph of a node, which has that name in the main graph, in the node's place.
/// What the sub-graph makes are the model's outputs; nothing else is left of the model but what that needs. The nodes
/// keep their names. Nothing where the types or ranks of a body's own inputs are unknown, or names clash.
[[nodiscard]] std::optional<onnx::Model> branch_as_model(onnx::Model model, const std::string& node,
                                                         std::size_t subgraph);

}  // namespace graft::inspect

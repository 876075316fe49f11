// Extracts a branch of If, or the body of Loop or Scan, as a model of its own.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "onnx/model.hpp"

namespace graft::inspect {

/// Returns `model` in which the node named `node` of the main graph is replaced by the nodes of its sub-graph number
/// `subgraph`. The outputs of the new model are those of the sub-graph and the values of the sub-graph that no node
/// reads; nodes that are not needed for them are removed. Nodes keep their names. Returns nothing if the type or rank
/// of an input of the sub-graph is unknown, if a name of the sub-graph also exists in the main graph, or if no output
/// remains.
[[nodiscard]] std::optional<onnx::Model> branch_as_model(onnx::Model model, const std::string& node,
                                                         std::size_t subgraph);

}  // namespace graft::inspect

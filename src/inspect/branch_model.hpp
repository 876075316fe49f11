// Extracts a branch of If, or the body of Loop or Scan, as a model of its own.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "onnx/model.hpp"

namespace graft::inspect {

/// Returns `model` with the node of that name in the main graph replaced by the nodes of its sub-graph. The new model
/// has the outputs of the sub-graph, and the values of the sub-graph that no node reads; nodes that these outputs do
/// not need are removed. The nodes keep their names. Returns nothing if the type or rank of an input of the body is
/// unknown, if a name of the sub-graph is taken in the main graph, or if no output is left.
[[nodiscard]] std::optional<onnx::Model> branch_as_model(onnx::Model model, const std::string& node,
                                                         std::size_t subgraph);

}  // namespace graft::inspect

// Descriptions of nodes, so that nodes with equal descriptions are probed once.
#pragma once

#include <optional>
#include <string>

#include "onnx/model.hpp"

namespace graft::inspect {

/// Two descriptions of a node as strings that can be compared. Neither contains the name of the node.
struct Likeness {
  /// Operator, attributes, input types and ranks. Nodes with equal `kind` often fail for the same reason.
  std::string kind;
  /// Operator, attributes, input shapes, values of small constants, and which outputs are used. Nodes with equal
  /// `exact` fail together.
  std::string exact;
};

/// Returns the descriptions of a node. Returns nothing for a node with a sub-graph, with a tensor of strings, with an
/// input that is untyped or not a tensor, or whose sizes are computed by more than 31 other nodes. `can_be_input` tells
/// for a value whether it can become the input of a part of the model, of which only type and shape are known.
[[nodiscard]] std::optional<Likeness> likeness_of(const onnx::Node& node, bool (*can_be_input)(const onnx::Value&));

}  // namespace graft::inspect

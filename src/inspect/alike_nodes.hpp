// Descriptions of nodes, so that nodes with equal descriptions are probed once.
#pragma once

#include <optional>
#include <string>

#include "onnx/model.hpp"

namespace graft::inspect {

/// Two descriptions of a node, as strings that can be compared with those of other nodes. They do not contain the
/// node's name.
struct Likeness {
  /// The operator, the attributes, and the types and ranks of the inputs. Nodes with equal `kind` often fail for the
  /// same reason.
  std::string kind;
  /// The operator, the attributes, the input shapes, the values of small constants, and which outputs are used.
  /// TensorRT accepts or refuses nodes with equal `exact` alike.
  std::string exact;
};

/// Returns the descriptions of a node. Returns nothing for a node with a sub-graph, a tensor of strings, an input that
/// is untyped or not a tensor, or sizes that more than 31 other nodes compute. `can_be_input` returns whether a value
/// can become an input when the node is extracted, so that only its type and shape are described and not the nodes
/// before it.
[[nodiscard]] std::optional<Likeness> likeness_of(const onnx::Node& node, bool (*can_be_input)(const onnx::Value&));

}  // namespace graft::inspect

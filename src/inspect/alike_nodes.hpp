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

/// Returns the Likeness of a node. Returns nothing for a node with a sub-graph, a tensor of strings, or an input that
/// is untyped or not a tensor. If `can_be_input` returns true for an input, only its type and shape are described. The
/// other inputs contain sizes, so the nodes that compute them are described too; if these are more than 31 nodes,
/// nothing is returned.
[[nodiscard]] std::optional<Likeness> likeness_of(const onnx::Node& node, bool (*can_be_input)(const onnx::Value&));

}  // namespace graft::inspect

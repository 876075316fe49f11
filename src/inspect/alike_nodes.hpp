// Nodes to which TensorRT gives the same answer, so that one of them is enough to ask about.
#pragma once

#include <optional>
#include <string>

#include "onnx/model.hpp"

namespace graft::inspect {

/// What a node's answer can depend on.
struct Likeness {
  std::string kind;   ///< Operator, attributes, types, ranks: nodes of one kind often fail for the same reason.
  std::string exact;  ///< The same with sizes and the values of small constants: nodes alike in this fail together.
};

/// Nothing for a node that holds sub-graphs or what Graft does not look into, and where a long computation gives it
/// its sizes. `can_be_input` tells of which inputs a part of the model knows no more than type and shape.
[[nodiscard]] std::optional<Likeness> likeness_of(const onnx::Node& node, bool (*can_be_input)(const onnx::Value&));

}  // namespace graft::inspect

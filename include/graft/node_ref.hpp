// Names of nodes and tensors in reports. They are data, from which programs compose their own messages.
#pragma once

#include <string>

namespace graft {

/// A node of a model.
struct NodeRef {
  std::string id;      ///< The name of the node's first output, which is unique in the model.
  std::string name;    ///< The node's name in the model; the id where the node has no name.
  std::string op;      ///< The operator type: "Conv".
  std::string domain;  ///< The operator's domain: "graft"; empty for ONNX's own operators.
  friend bool operator==(const NodeRef&, const NodeRef&) = default;
};

/// Returns a description such as "node 'conv1' (Conv)" or "node 'norm' (graft::L2Normalize)".
[[nodiscard]] inline std::string describe(const NodeRef& node) {
  return "node '" + node.name + "' (" + (node.domain.empty() ? "" : node.domain + "::") + node.op + ")";
}

/// A tensor of a model.
struct TensorRef {
  std::string name;
  std::string type;  ///< Type and shape of the run: "f32[2, 10]"; empty where the model has no such tensor.
  friend bool operator==(const TensorRef&, const TensorRef&) = default;
};

}  // namespace graft

// For a node under a drop-in name, the name is the one in the model.
#include "onnx/operator_name.hpp"

#include "onnx/operator_node.hpp"

namespace graft::onnx {

std::string qualified_operator_name(const Node& node) {
  const OperatorMatch match = find_operator_for(node);
  const std::string name = match && match.drop_in == nullptr ? std::string(match.type->name) : node.op_type;
  return node.domain.empty() ? name : node.domain + "::" + name;
}

}  // namespace graft::onnx

// Which calls of functions are operators.
#include "onnx/operator_calls.hpp"

#include <utility>

#include "graft/registry.hpp"
#include "onnx/operator_node.hpp"

namespace graft::onnx {

bool is_plain_call(const FunctionKey& function) {
  if (function.domain == onnx_domain) return false;
  const OperatorType* type = operator_libraries().empty() ? nullptr : find_operator(function.name);
  return type == nullptr || library_of(*type) == nullptr;
}

std::vector<const Node*> calls_without_operator(const Model& model) {
  std::vector<const Node*> calls;
  const auto look = [&](const Node& node) {
    const bool is_call = node.domain == onnx_domain && model.find_function(node) != nullptr;
    if (is_call && !find_operator_for(node)) calls.push_back(&node);
  };
  model.graph().for_each_node(look);
  for (const auto& entry : model.functions) std::as_const(*entry.second.body).for_each_node(look);
  return calls;
}

std::string called_operator(const Node& node) {
  const auto note = node.metadata.find(operator_note);
  return note == node.metadata.end() ? node.op_type : note->second;
}

}  // namespace graft::onnx

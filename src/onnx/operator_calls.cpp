// Operators are found by domain and by name.
#include "onnx/operator_calls.hpp"

#include <set>

#include "graft/operator/registry.hpp"
#include "onnx/operator_node.hpp"

namespace graft::onnx {

bool is_plain_call(const FunctionKey& function) {
  if (function.domain == onnx_domain) return false;
  const OperatorType* type = operator_libraries().empty() ? nullptr : find_operator(function.name);
  return type == nullptr || library_of(*type) == nullptr;
}

std::vector<const Node*> calls_without_operator(const Model& model) {
  std::vector<const Node*> calls;
  std::set<const Graph*> seen;
  std::vector<const Graph*> open{&model.graph()};
  while (!open.empty()) {
    const Graph* graph = open.back();
    open.pop_back();
    graph->for_each_node([&](const Node& node) {
      const auto* function = model.find_function(node);
      if (function == nullptr || find_operator_for(node)) return;
      if (node.domain == onnx_domain) calls.push_back(&node);
      if (seen.insert(function->body.get()).second) open.push_back(function->body.get());
    });
  }
  return calls;
}

std::string called_operator(const Node& node) {
  const auto note = node.metadata.find(operator_note);
  return note == node.metadata.end() ? node.op_type : note->second;
}

}  // namespace graft::onnx

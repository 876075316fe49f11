// The condition must be a single boolean.
#include "onnx/branches.hpp"

#include <memory>

namespace graft::onnx {

Graph* subgraph(const Node& node, std::string_view attribute_name) {
  const NodeAttribute* attribute = node.attribute(attribute_name);
  const auto* graph = attribute == nullptr ? nullptr : attribute->get<std::unique_ptr<Graph>>();
  return graph == nullptr ? nullptr : graph->get();
}

std::string_view taken_branch(const std::optional<std::vector<double>>& condition) {
  if (!condition || condition->size() != 1) return "";
  return condition->front() != 0 ? "then_branch" : "else_branch";
}

}  // namespace graft::onnx

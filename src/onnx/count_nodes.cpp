// Visits the nodes and initializers of all graphs once.
#include "onnx/count_nodes.hpp"

#include <optional>

namespace graft::onnx {

NodeCounts count_nodes(const Model& model) {
  NodeCounts counts;
  model.graph().for_each_node([&](const Node& node) {
    ++(node.is("Constant") ? counts.constants : counts.nodes);
    counts.in_bodies += node.graph == &model.graph() ? 0 : 1;
  });
  return counts;
}

std::uint64_t bytes_of_weights(const Model& model) {
  std::uint64_t bytes = 0;
  const auto add_initializers = [&](const Graph& graph) {
    for (const Value* value : graph.initializers()) bytes += value->initializer->bytes.size();
  };
  add_initializers(model.graph());
  model.graph().for_each_node([&](const Node& node) {
    for (const Graph* inner : node.subgraphs()) add_initializers(*inner);
    const auto constant = node.is("Constant") ? node.output()->constant() : std::nullopt;
    if (constant) bytes += constant->bytes.size();
  });
  return bytes;
}

}  // namespace graft::onnx

// Copies the nodes of the sub-graph to the end of the main graph and removes the node that held the sub-graph.
#include "inspect/branch_model.hpp"

#include <unordered_map>

#include "onnx/copy.hpp"

namespace graft::inspect {
namespace {

/// Copies the values and nodes of `inner` to `outer`, and adds each value with its copy to `copies`. Returns false if
/// the name of a value exists in `outer`, or if the type or rank of an input of `inner` is unknown.
bool copy_out(const onnx::Graph& inner, onnx::Graph& outer,
              std::unordered_map<const onnx::Value*, onnx::Value*>& copies) {
  for (const onnx::Value* value : inner.values()) {
    const bool is_vague = value->is_input && (!value->type || !value->shape);
    if (is_vague || outer.find_local(value->name) != nullptr) return false;
    copies.emplace(value, copy_value(*value, outer));
  }
  for (const onnx::Value* input : inner.inputs()) outer.set_is_input(*copies.at(input), true);
  for (const onnx::Node* node : inner.nodes()) {
    copy_node(*node, outer, [&](onnx::Value* value) {
      const auto copy = copies.find(value);
      return copy == copies.end() ? value : copy->second;
    });
  }
  return true;
}

}  // namespace

std::optional<onnx::Model> branch_as_model(onnx::Model model, const std::string& node, std::size_t subgraph) {
  onnx::Graph& graph = model.graph();
  onnx::Node& holder = *graph.find_node(node);
  const onnx::Graph& inner = *holder.subgraphs().at(subgraph);
  std::unordered_map<const onnx::Value*, onnx::Value*> copies;
  if (!copy_out(inner, graph, copies)) return std::nullopt;
  while (!graph.outputs().empty()) graph.remove_output(graph.outputs().size() - 1);
  for (const onnx::Value* output : inner.outputs()) {
    const auto copy = copies.find(output);
    const bool is_made = copy != copies.end() && copy->second->producer != nullptr;
    if (is_made && !copy->second->is_output()) graph.add_output(*copy->second);
  }
  for (const onnx::Node* each : inner.nodes()) {
    for (const onnx::Value* value : each->outputs) {
      const auto copy = copies.find(value);
      if (copy == copies.end() || copy->second->producer == nullptr) continue;
      if (copy->second->is_unused()) graph.add_output(*copy->second);  // TensorRT parses dead nodes, too
    }
  }
  if (graph.outputs().empty()) return std::nullopt;
  graph.remove_node(holder);
  graph.remove_dead();
  for (onnx::Value* input : std::vector<onnx::Value*>(graph.inputs())) {
    if (!input->is_unused()) continue;
    graph.set_is_input(*input, false);
    graph.remove_value(*input);
  }
  return model;
}

}  // namespace graft::inspect

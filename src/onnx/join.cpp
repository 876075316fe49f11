// Connects values by their names. A value that both models compute occurs twice in the result, under two names.
#include "onnx/join.hpp"

#include <fmt/format.h>

#include <unordered_map>

#include "onnx/copy.hpp"

namespace graft::onnx {

Model join(const Model& first, const Model& second, const std::vector<std::string>& outputs) {
  Model whole = first.clone();
  Graph& graph = whole.graph();
  while (!graph.outputs().empty()) graph.remove_output(graph.outputs().size() - 1);
  for (const auto& [key, function] : second.functions) {
    if (!whole.functions.contains(key)) whole.functions.emplace(key, function.clone());
  }
  std::unordered_map<const Value*, Value*> copies;
  std::unordered_map<std::string, Value*> by_name;  // The values by their names in the two models.
  for (Value* value : graph.values()) by_name.emplace(value->name, value);
  for (const Value* value : second.graph().values()) {
    Value*& known = by_name[value->name];
    if (known == nullptr || !value->is_input) {
      Value* made = graph.make_value(value->name);
      copy_facts(*value, *made);
      if (value->is_input) graph.set_is_input(*made, true);
      if (known == nullptr || value->is_output()) known = made;
      copies.emplace(value, made);
    } else {
      copies.emplace(value, known);
    }
  }
  for (const Node* node : second.graph().nodes()) {
    copy_node(*node, graph, [&](Value* value) { return copies.at(value); });
  }
  for (const std::string& name : outputs) {
    const auto found = by_name.find(name);
    if (found == by_name.end()) {
      throw Error(fmt::format("neither {} nor {} has the output '{}'", first.source, second.source, name));
    }
    Value* output = found->second;
    // Both models compute the output. The value of the first model is renamed, so that the second model's value can
    // have the name.
    if (output->name != name && graph.find_local(name) != nullptr) {
      graph.rename(*graph.find_local(name), graph.unique_name(name));
    }
    graph.rename(*output, name);
    graph.add_output(*output);
  }
  graph.remove_dead();
  return whole;
}

}  // namespace graft::onnx

// Cuts a region out of a graph, as a model that runs on its own.
#include "graph/extract.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "graph/functions.hpp"

namespace graft {

Model extract(const Model& model, const std::vector<const Value*>& inputs, const std::vector<const Value*>& outputs) {
  const std::set<const Value*> boundary(inputs.begin(), inputs.end());
  std::set<const Node*> wanted;
  std::vector<const Value*> constants;
  std::set<const Value*> seen;
  std::vector<const Value*> waiting(outputs.begin(), outputs.end());
  while (!waiting.empty()) {
    const Value* value = waiting.back();
    waiting.pop_back();
    if (boundary.contains(value) || !seen.insert(value).second) continue;
    if (value->initializer && !value->is_input) {
      constants.push_back(value);
      continue;
    }
    if (value->producer == nullptr) {
      throw Error(Error::Kind::internal,
                  fmt::format("{}: the region depends on '{}', which is neither among its inputs nor constant",
                              model.source, value->name));
    }
    if (value->graph != &model.graph()) {
      throw Error(Error::Kind::internal, fmt::format("{}: '{}' lies inside a sub-graph", model.source, value->name));
    }
    if (!wanted.insert(value->producer).second) continue;
    const auto add_inputs = [&](const Node& node) {
      for (const Value* input : node.inputs) {
        if (input != nullptr && input->graph == &model.graph()) waiting.push_back(input);
      }
    };
    add_inputs(*value->producer);
    for (const Graph* inner : value->producer->subgraphs()) {
      inner->for_each_node(add_inputs);
      for (const Value* output : inner->outputs()) {
        if (output->graph == &model.graph()) waiting.push_back(output);
      }
    }
  }

  // A copy of the whole from which everything else is taken away keeps every detail of what stays.
  Model part = model.clone();
  Graph& graph = part.graph();
  std::vector<std::string> output_names;
  for (const Value* output : outputs) output_names.push_back(output->name);
  while (!graph.outputs().empty()) graph.remove_output(graph.outputs().size() - 1);
  const auto original_nodes = model.graph().nodes();
  const auto nodes = graph.nodes();
  std::set<std::string> cut;  // inputs of the region that a node makes
  for (const Value* input : inputs) {
    if (input->producer != nullptr) cut.insert(input->name);
    if (!input->type) {
      throw Error(Error::Kind::internal,
                  fmt::format("{}: the element type of '{}' is unknown; infer_shapes has to come first", model.source,
                              input->name));
    }
  }
  for (std::size_t i = nodes.size(); i-- > 0;) {
    Node& node = *nodes[i];
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      if (node.outputs[k] == nullptr || !cut.contains(node.outputs[k]->name)) continue;
      graph.detach_output(node, k);
    }
  }
  for (std::size_t i = nodes.size(); i-- > 0;) {
    if (wanted.contains(original_nodes[i])) continue;
    graph.remove_node(*nodes[i]);
  }
  for (Value* input : std::vector<Value*>(graph.inputs())) graph.set_is_input(*input, false);
  for (const Value* input : inputs) {
    Value* value = graph.find_local(input->name);
    value->initializer.reset();
    graph.set_is_input(*value, true);
  }
  for (const std::string& name : output_names) graph.add_output(*graph.find_local(name));
  for (Value* value : graph.values()) {
    if (value->producer == nullptr && !value->is_input && value->is_unused()) graph.remove_value(*value);
  }
  remove_unused_functions(part);
  part.source = fmt::format("a part of {}", model.source);
  return part;
}

}  // namespace graft

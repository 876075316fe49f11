// A part begins at values whose numbers no size depends on.
#include "inspect/model_parts.hpp"

#include <utility>

namespace graft::inspect {

const Node* find_inside(const Model& model, const Node& node, const std::function<bool(const Node&)>& fits) {
  constexpr int deepest = 24;
  const std::function<const Node*(const Node&, int)> search = [&](const Node& outer, int depth) -> const Node* {
    const Node* found = nullptr;
    const auto look = [&](const Node& inner) {
      if (found == nullptr && fits(inner)) found = &inner;
      if (found == nullptr && model.find_function(inner) != nullptr) found = search(inner, depth + 1);
    };
    if (depth > deepest) return nullptr;
    for (const Graph* graph : outer.subgraphs()) graph->for_each_node(look);
    if (const FunctionDefinition* function = model.find_function(outer)) {
      std::as_const(*function->body).for_each_node(look);
    }
    return found;
  };
  return search(node, 0);
}

void for_each_read(const Node& node, const Graph& main, const std::function<void(const Value&)>& f) {
  const auto visit = [&](const Value* value) {
    if (value != nullptr && value->graph == &main) f(*value);
  };
  for (const Value* input : node.inputs) visit(input);
  for (const Graph* inner : node.subgraphs()) {
    inner->for_each_node([&](const Node& reader) {
      for (const Value* input : reader.inputs) visit(input);
    });
    for (const Value* output : inner->outputs()) visit(output);
  }
}

bool can_be_input(const Value& value) { return value.type && value.shape && is_floating_point(*value.type); }

void declare_outputs(Model& model) {
  for (Value* output : model.graph().outputs()) {
    if (!output->type && output->opaque.empty()) output->type = ElementType::f32;
  }
}

std::vector<const Node*> with_sizes(const std::vector<const Node*>& nodes, const Graph& main,
                                    const std::set<const Node*>& bad) {
  std::set<const Node*> chosen(nodes.begin(), nodes.end());
  std::vector<const Node*> waiting = nodes;
  while (!waiting.empty()) {
    const Node* node = waiting.back();
    waiting.pop_back();
    for_each_read(*node, main, [&](const Value& value) {
      if (value.producer == nullptr || can_be_input(value) || bad.contains(value.producer)) return;
      if (chosen.insert(value.producer).second) waiting.push_back(value.producer);
    });
  }
  std::vector<const Node*> ordered;
  for (const Node* node : main.nodes()) {
    if (chosen.contains(node)) ordered.push_back(node);
  }
  return ordered;
}

}  // namespace graft::inspect

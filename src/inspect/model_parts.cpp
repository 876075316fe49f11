// A part begins at floating-point values, from which no size is computed.
#include "inspect/model_parts.hpp"

#include <utility>

namespace graft::inspect {

const onnx::Node* find_inside(const onnx::Model& model, const onnx::Node& node,
                              const std::function<bool(const onnx::Node&)>& fits) {
  constexpr int deepest = 24;
  const std::function<const onnx::Node*(const onnx::Node&, int)> search = [&](const onnx::Node& outer,
                                                                              int depth) -> const onnx::Node* {
    const onnx::Node* found = nullptr;
    const auto look = [&](const onnx::Node& inner) {
      if (found == nullptr && fits(inner)) found = &inner;
      if (found == nullptr && model.find_function(inner) != nullptr) found = search(inner, depth + 1);
    };
    if (depth > deepest) return nullptr;
    for (const onnx::Graph* graph : outer.subgraphs()) graph->for_each_node(look);
    if (const onnx::FunctionDefinition* function = model.find_function(outer)) {
      std::as_const(*function->body).for_each_node(look);
    }
    return found;
  };
  return search(node, 0);
}

void for_each_read(const onnx::Node& node, const onnx::Graph& main, const std::function<void(const onnx::Value&)>& f) {
  const auto visit = [&](const onnx::Value* value) {
    if (value != nullptr && value->graph == &main) f(*value);
  };
  for (const onnx::Value* input : node.inputs) visit(input);
  for (const onnx::Graph* inner : node.subgraphs()) {
    inner->for_each_node([&](const onnx::Node& reader) {
      for (const onnx::Value* input : reader.inputs) visit(input);
    });
    for (const onnx::Value* output : inner->outputs()) visit(output);
  }
}

bool can_be_input(const onnx::Value& value) { return value.type && value.shape && is_floating_point(*value.type); }

void declare_outputs(onnx::Model& model) {
  for (onnx::Value* output : model.graph().outputs()) {
    if (!output->type && output->opaque.empty() && !output->container) output->type = onnx::ElementType::f32;
  }
}

std::vector<const onnx::Node*> with_sizes(const std::vector<const onnx::Node*>& nodes, const onnx::Graph& main,
                                          const std::set<const onnx::Node*>& bad) {
  std::set<const onnx::Node*> chosen(nodes.begin(), nodes.end());
  std::vector<const onnx::Node*> waiting = nodes;
  while (!waiting.empty()) {
    const onnx::Node* node = waiting.back();
    waiting.pop_back();
    for_each_read(*node, main, [&](const onnx::Value& value) {
      if (value.producer == nullptr || can_be_input(value) || bad.contains(value.producer)) return;
      if (chosen.insert(value.producer).second) waiting.push_back(value.producer);
    });
  }
  std::vector<const onnx::Node*> ordered;
  for (const onnx::Node* node : main.nodes()) {
    if (chosen.contains(node)) ordered.push_back(node);
  }
  return ordered;
}

}  // namespace graft::inspect

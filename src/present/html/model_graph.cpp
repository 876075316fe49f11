// A value that a sub-graph reads from the outer graph is drawn as an edge to the node that contains the sub-graph.
#include "present/html/model_graph.hpp"

#include <fmt/format.h>

#include <set>

#include "core/utf8.hpp"
#include "onnx/node_ref.hpp"
#include "onnx/operator_name.hpp"
#include "onnx/text.hpp"

namespace graft::html {
namespace {

constexpr std::size_t longest_text = 600;

std::string cut(std::string text) {
  if (text.size() <= longest_text) return text;
  std::size_t end = longest_text;
  while (end > 0 && is_utf8_continuation(text[end])) --end;  // does not split a character
  text.resize(end);
  return text + "…";
}

std::string name_of(const graft::onnx::Node& node) {
  if (!node.name.empty()) return node.name;
  return node.output(0) == nullptr ? "" : node.output(0)->name;
}

/// Returns the quantized weight that a DequantizeLinear converts to `value`, or null. Such a DequantizeLinear is drawn
/// like a constant, because it depends on no input of the network.
const onnx::Value* dequantized_constant(const onnx::Value& value) {
  if (value.producer == nullptr || !value.producer->is("DequantizeLinear")) return nullptr;
  const onnx::Value* steps = value.producer->input(0);
  return steps != nullptr && steps->initializer ? steps : nullptr;
}

bool is_constant(const graft::onnx::Node& node) {
  return node.is("Constant") || (node.output(0) != nullptr && dequantized_constant(*node.output(0)) != nullptr);
}

class GraphMaker {
 public:
  GraphMaker(Report& report, ModelPlaces& places) : report_(report), places_(places) {}

  std::size_t add(const graft::onnx::Graph& graph, const std::string& title) {
    const std::size_t index = report_.graphs.size();
    report_.graphs.emplace_back();
    Graph drawn{.title = title, .nodes = {}, .edges = {}};
    std::unordered_map<const onnx::Value*, std::size_t> producers;
    for (const onnx::Value* input : graph.inputs()) {
      if (input->initializer) continue;
      producers[input] = drawn.nodes.size();
      drawn.nodes.push_back(end_node("input", *input));
    }
    for (const graft::onnx::Node* node : graph.nodes()) {
      if (is_constant(*node)) continue;
      const Place place{index, drawn.nodes.size()};
      places_.nodes.emplace(node, place);
      places_.by_id.emplace(onnx::ref_of(*node).id, place);
      for (const onnx::Value* output : node->outputs) {
        if (output == nullptr) continue;
        producers[output] = place.node;
        places_.tensors.emplace(output->name, place);
      }
      std::set<const onnx::Value*> read(node->inputs.begin(), node->inputs.end());
      drawn.nodes.push_back(make_node(*node, read, title));
      add_edges(drawn, producers, read, place.node);
    }
    for (const onnx::Value* output : graph.outputs()) {
      drawn.nodes.push_back(end_node("output", *output));
      places_.tensors.emplace(output->name, Place{index, drawn.nodes.size() - 1});
      add_edges(drawn, producers, {output}, drawn.nodes.size() - 1);
    }
    report_.graphs[index] = std::move(drawn);
    return index;
  }

 private:
  static Node end_node(std::string op, const onnx::Value& value) {
    Node node;
    node.op = std::move(op);
    node.name = value.name;
    node.type = type_text(value);
    node.is_end = true;
    return node;
  }

  static Port port_of(const onnx::Value* value) {
    if (value == nullptr) return {.name = "", .type = "absent", .is_constant = false};
    if (const onnx::Value* steps = dequantized_constant(*value)) value = steps;
    return {
        .name = value->name,
        .type = cut(type_text(*value)),
        .is_constant = value->initializer.has_value() || (value->producer != nullptr && is_constant(*value->producer))};
  }

  /// Returns the drawn node, and adds to `read` the values that its sub-graphs read.
  Node make_node(const graft::onnx::Node& node, std::set<const onnx::Value*>& read, const std::string& title) {
    Node drawn;
    drawn.op = qualified_operator_name(node);
    drawn.name = name_of(node);
    if (node.output(0) != nullptr) drawn.type = type_text(*node.output(0));
    for (const onnx::Value* input : node.inputs) drawn.inputs.push_back(port_of(input));
    for (const onnx::Value* output : node.outputs) drawn.outputs.push_back(port_of(output));
    for (const auto& [name, attribute] : node.attributes) {
      if (attribute.kind() == "graph" || attribute.kind() == "graphs") continue;
      drawn.attributes.push_back({name, cut(to_text(attribute))});
    }
    const std::vector<graft::onnx::Graph*> subgraphs = node.subgraphs();
    for (std::size_t i = 0; i < subgraphs.size(); ++i) {
      subgraphs[i]->for_each_node(
          [&](const graft::onnx::Node& inner) { read.insert(inner.inputs.begin(), inner.inputs.end()); });
      read.insert(subgraphs[i]->outputs().begin(), subgraphs[i]->outputs().end());
      drawn.graphs.push_back(
          add(*subgraphs[i], fmt::format("{}, {} {}: sub-graph {}", title, drawn.op, drawn.name, i + 1)));
    }
    return drawn;
  }

  static void add_edges(Graph& drawn, const std::unordered_map<const onnx::Value*, std::size_t>& producers,
                        const std::set<const onnx::Value*>& read, std::size_t to) {
    std::map<std::size_t, std::string> tensors;  // ordered, so that the result does not depend on addresses
    for (const onnx::Value* value : read) {
      const auto found = value == nullptr ? producers.end() : producers.find(value);
      if (found == producers.end()) continue;
      std::string& tensor = tensors[found->second];
      tensor = tensor.empty() ? value->name : std::min(tensor, value->name);
    }
    for (const auto& [from, tensor] : tensors) drawn.edges.push_back({from, to, tensor});
  }

  Report& report_;
  ModelPlaces& places_;
};

}  // namespace

ModelPlaces add_graphs(Report& report, const onnx::Model& model, const std::string& title) {
  ModelPlaces places;
  GraphMaker(report, places).add(model.graph(), title);
  return places;
}

}  // namespace graft::html

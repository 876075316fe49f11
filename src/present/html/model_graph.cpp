// A value that a sub-graph reads from the outer graph is drawn as an edge to the node that contains the sub-graph.
#include "present/html/model_graph.hpp"

#include <fmt/format.h>

#include <set>
#include <unordered_map>

#include "core/utf8.hpp"

namespace graft::html {
namespace {

using report::ModelGraph;
using report::ModelNode;
using report::ModelValue;

constexpr std::size_t longest_text = 600;

std::string cut(std::string text) {
  if (text.size() <= longest_text) return text;
  std::size_t end = longest_text;
  while (end > 0 && is_utf8_continuation(text[end])) --end;  // does not split a character
  text.resize(end);
  return text + "…";
}

bool is(const ModelNode& node, std::string_view op) { return node.ref.op == op && node.ref.domain.empty(); }

/// Returns the quantized weight that a DequantizeLinear converts, or null. Such a DequantizeLinear is drawn like a
/// constant, because it depends on no input of the network.
const ModelValue* dequantized_constant(const ModelNode& node) {
  const bool is_of_weight = is(node, "DequantizeLinear") && !node.inputs.empty() && node.inputs[0].is_initializer;
  return is_of_weight ? &node.inputs[0] : nullptr;
}

bool is_constant(const ModelNode& node) { return is(node, "Constant") || dequantized_constant(node) != nullptr; }

/// The nodes of a graph and of the graphs around it, by the names of their results.
struct Scope {
  const Scope* outer = nullptr;
  std::unordered_map<std::string_view, const ModelNode*> producers = {};

  Scope(const Scope* around, const ModelGraph& graph) : outer(around) {
    for (const ModelNode& node : graph.nodes) {
      for (const ModelValue& output : node.outputs) producers.emplace(output.name, &node);
    }
  }
  [[nodiscard]] const ModelNode* producer_of(const std::string& value) const {
    const auto found = producers.find(value);
    if (found != producers.end()) return found->second;
    return outer == nullptr ? nullptr : outer->producer_of(value);
  }
};

class GraphMaker {
 public:
  GraphMaker(Report& report, ModelPlaces& places) : report_(report), places_(places) {}

  std::size_t add(const ModelGraph& graph, const std::string& title, const Scope* outer = nullptr) {
    const Scope scope(outer, graph);
    const std::size_t index = report_.graphs.size();
    report_.graphs.emplace_back();
    Graph drawn{.title = title, .nodes = {}, .edges = {}};
    std::unordered_map<std::string, std::size_t> producers;
    for (const ModelValue& input : graph.inputs) {
      if (input.is_initializer) continue;
      producers[input.name] = drawn.nodes.size();
      drawn.nodes.push_back(end_node("input", input));
    }
    for (const ModelNode& node : graph.nodes) {
      if (is_constant(node)) {
        places_.nodes.emplace_back();
        continue;
      }
      const Place place{index, drawn.nodes.size()};
      places_.nodes.emplace_back(place);
      places_.by_id.emplace(node.ref.id, place);
      for (const ModelValue& output : node.outputs) {
        if (output.name.empty()) continue;
        producers[output.name] = place.node;
        places_.tensors.emplace(output.name, place);
      }
      drawn.nodes.push_back(make_node(node, title, scope));
      std::set<std::string> read(node.captures.begin(), node.captures.end());
      for (const ModelValue& input : node.inputs) read.insert(input.name);
      add_edges(drawn, producers, read, place.node);
    }
    for (const ModelValue& output : graph.outputs) {
      drawn.nodes.push_back(end_node("output", output));
      places_.tensors.emplace(output.name, Place{index, drawn.nodes.size() - 1});
      add_edges(drawn, producers, {output.name}, drawn.nodes.size() - 1);
    }
    report_.graphs[index] = std::move(drawn);
    return index;
  }

 private:
  static Node end_node(std::string op, const ModelValue& value) {
    Node node;
    node.op = std::move(op);
    node.name = value.name;
    node.type = value.type;
    node.is_end = true;
    return node;
  }

  static Port port_of(const ModelValue& value, const Scope& scope) {
    if (value.name.empty()) return {.name = "", .type = "absent", .is_constant = false};
    const ModelNode* producer = scope.producer_of(value.name);
    const ModelValue* steps = producer == nullptr ? nullptr : dequantized_constant(*producer);
    const ModelValue& shown = steps == nullptr ? value : *steps;
    const bool is_of_constant = producer != nullptr && is_constant(*producer);
    return {.name = shown.name, .type = cut(shown.type), .is_constant = shown.is_initializer || is_of_constant};
  }

  Node make_node(const ModelNode& node, const std::string& title, const Scope& scope) {
    Node drawn;
    drawn.op = node.op;
    drawn.name = node.ref.name;
    drawn.cost = node.cost;
    if (!node.outputs.empty()) drawn.type = node.outputs[0].type;
    for (const ModelValue& input : node.inputs) drawn.inputs.push_back(port_of(input, scope));
    for (const ModelValue& output : node.outputs) drawn.outputs.push_back(port_of(output, scope));
    for (const auto& [name, text] : node.attributes) drawn.attributes.push_back({name, cut(text)});
    for (std::size_t i = 0; i < node.bodies.size(); ++i) {
      drawn.graphs.push_back(
          add(node.bodies[i], fmt::format("{}, {} {}: sub-graph {}", title, drawn.op, drawn.name, i + 1), &scope));
    }
    return drawn;
  }

  static void add_edges(Graph& drawn, const std::unordered_map<std::string, std::size_t>& producers,
                        const std::set<std::string>& read, std::size_t to) {
    std::map<std::size_t, std::string> tensors;  // `read` is sorted, so that each producer has its first name
    for (const std::string& value : read) {
      const auto found = producers.find(value);
      if (found != producers.end()) tensors.emplace(found->second, value);
    }
    for (const auto& [from, tensor] : tensors) drawn.edges.push_back({from, to, tensor});
  }

  Report& report_;
  ModelPlaces& places_;
};

}  // namespace

ModelPlaces add_graphs(Report& report, const ModelGraph& graph, const std::string& title) {
  ModelPlaces places;
  GraphMaker(report, places).add(graph, title);
  return places;
}

}  // namespace graft::html

// Derives permutations from the axes that ONNX's documentation lists for both layouts.
#include "runtime/onnxruntime/recurrent_layout.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "onnx/schema.hpp"

namespace graft::runtime {
namespace {

/// The axes of a tensor in both layouts, a letter for each: s is seq_length, b batch_size, d num_directions, i
/// input_size and h hidden_size.
struct Axes {
  std::string_view time_first;   ///< The order for layout = 0.
  std::string_view batch_first;  ///< The order for layout = 1.
};

constexpr Axes sequence{"sbi", "bsi"};      // X
constexpr Axes all_states{"sdbh", "bsdh"};  // Y
constexpr Axes single_state{"dbh", "bdh"};  // The order of initial_h, initial_c, Y_h and Y_c.

std::vector<std::int64_t> permutation(std::string_view from, std::string_view to) {
  std::vector<std::int64_t> order;
  for (const char axis : to) order.push_back(static_cast<std::int64_t>(from.find(axis)));
  return order;
}

void set_permutation(onnx::Node& transpose, std::string_view from, std::string_view to) {
  transpose.attributes.emplace("perm", onnx::NodeAttribute(onnx::AttributeData(permutation(from, to))));
}

const onnx::NodeAttribute* layout_of(const onnx::Node& node) {
  return has_trait(node, onnx::trait::recurrent) ? node.attribute("layout") : nullptr;
}

bool has_batch_first(const onnx::Node& node) {
  const onnx::NodeAttribute* layout = layout_of(node);
  const auto* number = layout == nullptr ? nullptr : layout->get<std::int64_t>();
  return number != nullptr && *number == 1;
}

void put_time_first(onnx::Node& node) {
  onnx::Graph& graph = *node.graph;
  constexpr std::size_t x = 0;
  constexpr std::size_t initial_h = 5;
  constexpr std::size_t initial_c = 6;  // The input of LSTM; GRU and RNN have no seventh input.
  std::vector<onnx::Value*> inputs = node.inputs;
  for (const std::size_t i : {x, initial_h, initial_c}) {
    if (i >= inputs.size() || inputs[i] == nullptr) continue;
    const Axes axes = i == x ? sequence : single_state;
    onnx::Node* transpose = graph.add_node("Transpose", {inputs[i]}, {inputs[i]->name + "/time_first"}, &node);
    set_permutation(*transpose, axes.batch_first, axes.time_first);
    inputs[i] = transpose->output();
  }
  std::vector<std::string> hints;
  for (const onnx::Value* output : node.outputs) hints.push_back(output == nullptr ? "" : output->name + "/time_first");
  onnx::Node& rewritten = *graph.add_node(node.op_type, std::move(inputs), hints, &node);
  rewritten.name = node.name;
  rewritten.metadata = node.metadata;
  rewritten.attributes = std::move(node.attributes);
  rewritten.attributes.erase("layout");
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    onnx::Value* output = node.outputs[i];
    if (output == nullptr) continue;
    const Axes axes = i == 0 ? all_states : single_state;
    graph.detach_output(node, i);
    onnx::Node* transpose = graph.add_node_with_outputs("Transpose", {rewritten.output(i)}, {output}, &node);
    set_permutation(*transpose, axes.time_first, axes.batch_first);
  }
  graph.remove_node(node);
}

std::size_t put_time_first(onnx::Graph& graph) {
  std::vector<onnx::Node*> nodes;
  graph.for_each_node([&](onnx::Node& node) {
    if (has_batch_first(node)) nodes.push_back(&node);
  });
  for (onnx::Node* node : nodes) put_time_first(*node);
  return nodes.size();
}

}  // namespace

std::size_t put_time_first(onnx::Model& model) {
  std::size_t replaced = put_time_first(model.graph());
  for (auto& [key, function] : model.functions) replaced += put_time_first(*function.body);
  return replaced;
}

bool has_layout_of_call(const onnx::Model& model) {
  bool found = false;
  for (const auto& [key, function] : model.functions) {
    std::as_const(*function.body).for_each_node([&](const onnx::Node& node) {
      const onnx::NodeAttribute* layout = layout_of(node);
      found = found || (layout != nullptr && layout->get<onnx::AttributeReference>() != nullptr);
    });
  }
  return found;
}

}  // namespace graft::runtime

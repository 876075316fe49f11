// Inserts the node that a rule plans into a graph; in int8 between QuantizeLinear and DequantizeLinear.
#include <fmt/format.h>

#include <utility>

#include "graft/error.hpp"
#include "onnx/operator_node.hpp"
#include "rules/replace/new_node.hpp"

namespace graft::rules {
namespace {

onnx::Value* add_scale(onnx::Graph& graph, const std::string& name, double scale) {
  return graph.add_constant(name + "_scale", onnx::TensorData::scalar_of(onnx::ElementType::f32, scale));
}

std::vector<onnx::Value*> find_inputs(const NewNode& planned, onnx::Graph& graph) {
  std::vector<onnx::Value*> inputs;
  for (const NodeInput& input : planned.inputs) {
    onnx::Value* value = input.is_new || input.name.empty() ? nullptr : graph.find(input.name);
    if (value == nullptr && input.constant) value = graph.add_constant(input.name, *input.constant);
    if (value == nullptr && !input.name.empty()) {
      throw Error(
          fmt::format("tensor '{}' is not available in the graph in which the operator is inserted", input.name));
    }
    inputs.push_back(value);
  }
  return inputs;
}

onnx::Node* add_node(const NewNode& planned, onnx::Graph& graph, std::vector<onnx::Value*> inputs,
                     const std::vector<std::string>& output_names, onnx::Node* before) {
  onnx::Node* node = nullptr;
  if (planned.op != nullptr) {
    node = add_operator_node(graph, *planned.op, std::move(inputs), output_names, before);
  } else {
    if (!planned.with.domain.empty()) graph.root().opset_imports.emplace(planned.with.domain, 1);
    node = graph.add_node(planned.with.op_type, std::move(inputs), output_names, before, planned.with.domain);
    for (const auto& [name, value] : planned.attributes) node->attributes.emplace(name, onnx::NodeAttribute(value));
  }
  node->name = before->name.empty() ? planned.outputs[0] : before->name;
  if (!planned.note.empty()) node->metadata[std::string(onnx::keep_note)] = planned.note;
  return node;
}

/// Adds three nodes before the node `before`: a QuantizeLinear of inputs[0], the new node in int8, and a
/// DequantizeLinear. `output` is the value that they replace and supplies the shape. Returns the DequantizeLinear.
onnx::Node* add_node_in_int8(const NewNode& planned, onnx::Graph& graph, std::vector<onnx::Value*> inputs,
                             const onnx::Value& output, onnx::Node* before) {
  onnx::Value* zero = graph.add_constant("zero", onnx::TensorData::scalar_of(onnx::ElementType::i8, 0));
  onnx::Value* scale = add_scale(graph, inputs[0]->name, planned.int8->input_scale);
  onnx::Node* quantize =
      graph.add_node("QuantizeLinear", {inputs[0], scale, zero}, {inputs[0]->name + "_int8"}, before);
  quantize->output()->type = onnx::ElementType::i8;
  quantize->output()->shape = inputs[0]->shape;
  inputs[0] = quantize->output();
  onnx::Node* node = add_node(planned, graph, std::move(inputs), {planned.outputs[0] + "_int8"}, before);
  node->output()->type = onnx::ElementType::i8;
  node->output()->shape = output.shape;
  scale = add_scale(graph, planned.outputs[0], planned.int8->output_scale);
  return graph.add_node("DequantizeLinear", {node->output(), scale, zero}, planned.outputs, before);
}

}  // namespace

void insert(const NewNode& planned, onnx::Graph& graph) {
  std::vector<onnx::Value*> inputs = find_inputs(planned, graph);
  std::vector<onnx::Value*> outputs;
  for (const std::string& name : planned.outputs) outputs.push_back(graph.find(name));
  onnx::Node* before = outputs.front()->producer;
  onnx::Node* node = planned.int8 ? add_node_in_int8(planned, graph, std::move(inputs), *outputs[0], before)
                                  : add_node(planned, graph, std::move(inputs), planned.outputs, before);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    graph.move_output(*outputs[i]->producer, outputs[i]->output_index, *node, i);
  }
  graph.topological_sort();
}

}  // namespace graft::rules

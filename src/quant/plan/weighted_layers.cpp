// Finds layers with constant weights, and changes their constants.
#include "quant/plan/weighted_layers.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include "onnx/schema.hpp"

namespace graft::quant {
namespace {

std::optional<WeightLayout> layout_of(const onnx::Node& node, const std::vector<std::int64_t>& dims) {
  WeightLayout layout;
  layout.dims = dims;
  if (node.is("Conv") || node.is("ConvTranspose")) {
    constexpr std::size_t least = 3;
    layout.groups = node.int_or("group", 1);
    layout.outputs_first = node.is("Conv");
    if (dims.size() < least || layout.groups < 1 || dims[0] % layout.groups != 0) return std::nullopt;
    return layout;
  }
  if (dims.size() != 2) return std::nullopt;
  if (node.is("MatMul")) return layout;
  if (!node.is("Gemm") || node.int_or("transA", 0) != 0) return std::nullopt;
  layout.outputs_first = node.int_or("transB", 0) != 0;
  return layout;
}

/// Returns the rank of the layer's output, or nothing if it is unknown.
std::optional<std::size_t> rank_of_output(const WeightedLayer& layer) {
  if (!layer.node->is("MatMul")) return layer.layout.dims.size();
  const onnx::Value& product = *layer.node->output();
  return product.shape ? std::optional(product.shape->size()) : std::nullopt;
}

/// Returns the Add after a MatMul that adds one constant number per channel, its bias, or null if no such node follows.
onnx::Node* find_add(const WeightedLayer& layer) {
  const onnx::Value& product = *layer.node->output();
  onnx::Node* add = only_reader(product);
  if (!layer.node->is("MatMul") || add == nullptr || !add->is("Add")) return nullptr;
  const onnx::Value* other = add->input(0) == &product ? add->input(1) : add->input(0);
  return numbers_per_channel(layer, other) ? add : nullptr;
}

/// Returns whether a Pad pads with the constant 0 and does not pad axis 1, the channels.
bool pads_with_zeros(const onnx::Node& pad) {
  if (pad.string_or("mode", "constant") != "constant" || pad.input(1) == nullptr || pad.input(3) != nullptr) {
    return false;
  }
  const auto constant = pad.input(1)->constant();
  const auto pads = constant ? constant->ints() : std::nullopt;
  if (!pads || pads->size() < 4 || (*pads)[1] != 0 || (*pads)[pads->size() / 2 + 1] != 0) return false;
  if (pad.input(2) == nullptr) return true;
  const auto filling = pad.input(2)->constant();
  return filling && filling->scalar() == 0.0;
}

std::size_t constant_input_of(const onnx::Node& add) { return add.input(0)->constant() ? 0 : 1; }

}  // namespace

std::size_t WeightLayout::elements() const {
  return static_cast<std::size_t>(std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>()));
}

std::size_t WeightLayout::inputs() const {
  return static_cast<std::size_t>(outputs_first ? dims[1] * groups : dims[0]);
}

std::size_t WeightLayout::outputs() const {
  return static_cast<std::size_t>(outputs_first ? dims[0] : dims[1] * groups);
}

std::size_t WeightedLayer::axes_after_channels() const {
  return node->is("Conv") || node->is("ConvTranspose") ? layout.dims.size() - 2 : 0;
}

bool WeightedLayer::owns_weights() const {
  const auto is_own = [](const onnx::Value& value) { return value.uses.size() == 1 && !value.is_output(); };
  return is_own(*weights) && (dequantize == nullptr || is_own(*dequantize->output()));
}

std::optional<WeightedLayer> find_weighted_layer(onnx::Node& node) {
  if (!has_trait(node, onnx::trait::weighted) || node.input(0) == nullptr || node.input(1) == nullptr ||
      node.output() == nullptr) {
    return std::nullopt;
  }
  WeightedLayer layer;
  layer.node = &node;
  layer.weights = node.input(1);
  onnx::Node* producer = layer.weights->producer;
  if (producer != nullptr && producer->is("DequantizeLinear") && producer->graph == node.graph) {
    layer.dequantize = producer;
    layer.weights = producer->input(0);
  }
  const auto constant = layer.weights->constant();
  if (!constant || constant->element_count() == 0) return std::nullopt;
  const bool is_stored = constant->type == onnx::ElementType::i8 || constant->type == onnx::ElementType::f8e4m3fn;
  const bool is_expected = layer.dequantize == nullptr ? constant->type == onnx::ElementType::f32 : is_stored;
  if (!is_expected) return std::nullopt;
  const auto layout = layout_of(node, constant->dims);
  if (!layout) return std::nullopt;
  layer.layout = *layout;
  layer.add = find_add(layer);
  return layer;
}

std::vector<WeightedLayer> weighted_layers(onnx::Model& model) {
  std::vector<WeightedLayer> layers;
  for (onnx::Node* node : model.graph().nodes()) {
    if (auto layer = find_weighted_layer(*node)) layers.push_back(std::move(*layer));
  }
  return layers;
}

onnx::Node* only_reader(const onnx::Value& value) {
  const bool is_inner = !value.is_output() && value.uses.size() == 1 && value.uses[0].node->graph == value.graph;
  return is_inner ? value.uses[0].node : nullptr;
}

bool lets_factors_through(const onnx::Node& node, bool has_planes) {
  // These are the elementwise operators and pools for which f(c x) = c f(x) for every c > 0.
  const bool has_one_output = std::all_of(node.outputs.begin() + 1, node.outputs.end(),
                                          [](const onnx::Value* value) { return value == nullptr; });
  if (!has_one_output) return false;
  if (is_any_of(node, {"Relu", "LeakyRelu", "Identity", "Dropout"})) {
    const bool trains = node.is("Dropout") && node.input(2) != nullptr;
    return !trains && (!node.is("LeakyRelu") || node.float_or("alpha", 0) >= 0);
  }
  return has_planes && (is_any_of(node, {"MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"}) ||
                        (node.is("Pad") && pads_with_zeros(node)));
}

std::optional<std::vector<double>> numbers_per_channel(const WeightedLayer& layer, const onnx::Value* constant) {
  const auto data = constant == nullptr ? std::nullopt : constant->constant();
  if (!data || data->type != onnx::ElementType::f32) return std::nullopt;
  const std::size_t after = layer.axes_after_channels();
  if (data->dims.size() > rank_of_output(layer).value_or(after + 1)) return std::nullopt;
  const std::size_t channels = layer.layout.outputs();
  const std::vector<double> numbers = *data->numbers();
  if (numbers.size() == 1) return std::vector<double>(channels, numbers[0]);
  const bool has_axis = data->dims.size() > after && numbers.size() == channels &&
                        data->dims[data->dims.size() - 1 - after] == static_cast<std::int64_t>(channels);
  return has_axis ? std::optional(numbers) : std::nullopt;
}

std::optional<std::vector<double>> bias_of(const WeightedLayer& layer) {
  const std::size_t channels = layer.layout.outputs();
  if (layer.node->is("MatMul")) {
    if (layer.add == nullptr) return std::vector<double>(channels, 0.0);
    return numbers_per_channel(layer, layer.add->input(constant_input_of(*layer.add)));
  }
  const onnx::Value* bias = layer.node->input(2);
  if (bias == nullptr) return std::vector<double>(channels, 0.0);
  if (layer.node->is("Gemm")) {
    auto numbers = numbers_per_channel(layer, bias);
    if (!numbers) return std::nullopt;
    for (double& number : *numbers) number *= static_cast<double>(layer.node->float_or("beta", 1.0F));
    return numbers;
  }
  const auto data = bias->constant();
  const bool is_whole = data && data->type == onnx::ElementType::f32 && data->dims.size() == 1;
  return is_whole ? data->numbers() : std::nullopt;
}

void replace_constant(onnx::Node& node, std::size_t input, const std::vector<std::int64_t>& dims,
                      const std::vector<double>& numbers) {
  onnx::Graph& graph = *node.graph;
  onnx::TensorData data = onnx::TensorData::from_numbers(onnx::ElementType::f32, dims, numbers);
  onnx::Value* old = node.input(input);
  const bool is_own = old != nullptr && old->initializer && !old->is_input && old->uses.size() == 1 &&
                      !old->is_output() && old->graph == &graph;
  if (is_own) {
    graph.set_initializer(*old, std::move(data));
    return;
  }
  onnx::Value* fresh = graph.add_constant(old != nullptr ? old->name : node.output()->name + ".bias", std::move(data));
  while (node.inputs.size() < input) graph.add_input_to(node, nullptr);
  graph.set_input(node, input, fresh);
}

void set_bias(WeightedLayer& layer, const std::vector<double>& bias) {
  const std::vector<std::int64_t> dims = {static_cast<std::int64_t>(bias.size())};
  onnx::Node& node = *layer.node;
  if (!node.is("MatMul")) {
    if (node.is("Gemm")) node.attributes.erase("beta");
    replace_constant(node, 2, dims, bias);
    return;
  }
  onnx::Graph& graph = *node.graph;
  if (layer.add != nullptr) {
    replace_constant(*layer.add, constant_input_of(*layer.add), dims, bias);
    return;
  }
  onnx::Value* constant = graph.add_constant(node.output()->name + ".bias",
                                             onnx::TensorData::from_numbers(onnx::ElementType::f32, dims, bias));
  const std::vector<onnx::Node*> order = graph.nodes();
  const auto next = std::next(std::find(order.begin(), order.end(), &node));
  onnx::Node* before = next == order.end() ? nullptr : *next;
  // The product gets a new value as its output, because the sum takes over the old one.
  layer.add = graph.add_node("Add", {node.input(0), constant}, {}, before);
  onnx::Node* maker = graph.add_node("Identity", {node.input(0)}, {node.output()->name});
  maker->output()->type = node.output()->type;
  maker->output()->shape = node.output()->shape;
  graph.move_output(node, 0, *layer.add, 0);
  graph.move_output(*maker, 0, node, 0);
  graph.remove_node(*maker);
  graph.set_input(*layer.add, 0, node.output());
}

}  // namespace graft::quant

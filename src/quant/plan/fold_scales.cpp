// Folds the nodes after a layer, one by one, each as a factor and a summand per channel.
#include "quant/plan/fold_scales.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "onnx/shape_inference.hpp"
#include "quant/plan/weighted_layers.hpp"

namespace graft::quant {
namespace {

/// The function factor[c] * x + summand[c] of each channel c.
struct Scale {
  std::vector<double> factor;
  std::vector<double> summand;
};

bool has_bias(const std::vector<double>& bias) {
  return std::any_of(bias.begin(), bias.end(), [](double number) { return number != 0; });
}

bool is_finite(const std::vector<double>& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](double number) { return std::isfinite(number); });
}

std::optional<Scale> scale_of_normalization(const onnx::Node& node, const WeightedLayer& layer) {
  const onnx::Value& x = layer.output();
  const bool has_statistics = node.int_or("training_mode", 0) == 0 && node.inputs.size() == 5 && node.input(0) == &x &&
                              std::all_of(node.outputs.begin() + 1, node.outputs.end(),
                                          [](const onnx::Value* output) { return output == nullptr; });
  // The channel axis of BatchNormalization is axis 1, that of a matrix product is the last axis.
  if (!has_statistics || (layer.node->is("MatMul") && x.rank().value_or(0) != 2)) return std::nullopt;
  std::vector<std::vector<double>> constants;
  for (std::size_t i = 1; i < node.inputs.size(); ++i) {
    const auto data = node.input(i) == nullptr ? std::nullopt : node.input(i)->constant();
    if (!data || data->type != onnx::ElementType::f32) return std::nullopt;
    constants.push_back(*data->numbers());
    if (constants.back().size() != layer.layout.outputs()) return std::nullopt;
  }
  const auto epsilon = static_cast<double>(node.float_or("epsilon", 1e-5F));
  Scale scale;
  for (std::size_t c = 0; c < constants[0].size(); ++c) {
    scale.factor.push_back(constants[0][c] / std::sqrt(constants[3][c] + epsilon));
    scale.summand.push_back(constants[1][c] - constants[2][c] * scale.factor.back());
  }
  return scale;
}

std::optional<Scale> scale_of(const onnx::Node& node, const WeightedLayer& layer) {
  if (node.is("BatchNormalization")) return scale_of_normalization(node, layer);
  const bool is_first = node.input(0) == &layer.output();
  const bool commutes = node.is("Mul") || node.is("Add");
  if (!commutes && !(is_first && (node.is("Sub") || node.is("Div")))) return std::nullopt;
  const auto numbers = numbers_per_channel(layer, node.input(is_first ? 1 : 0));
  if (!numbers) return std::nullopt;
  Scale scale{std::vector<double>(numbers->size(), 1.0), std::vector<double>(numbers->size(), 0.0)};
  for (std::size_t c = 0; c < numbers->size(); ++c) {
    if (node.is("Mul")) scale.factor[c] = (*numbers)[c];
    if (node.is("Div")) scale.factor[c] = 1 / (*numbers)[c];
    if (node.is("Add")) scale.summand[c] = (*numbers)[c];
    if (node.is("Sub")) scale.summand[c] = -(*numbers)[c];
  }
  return scale;
}

/// If a single node reads the output of a layer, and multiplies and adds one constant per channel, folds this node into
/// the weights and bias of the layer. Returns whether a node was folded.
bool fold_next(WeightedLayer& layer) {
  onnx::Node* node = only_reader(layer.output());
  if (node == nullptr || !layer.owns_weights() || layer.dequantize != nullptr) return false;
  const auto scale = scale_of(*node, layer);
  auto bias = bias_of(layer);
  if (!scale || !bias || !is_finite(scale->factor) || !is_finite(scale->summand)) return false;

  std::vector<double> numbers = *layer.weights->constant()->numbers();
  layer.layout.for_each([&](std::size_t i, std::size_t, std::size_t output) { numbers[i] *= scale->factor[output]; });
  for (std::size_t c = 0; c < bias->size(); ++c) (*bias)[c] = (*bias)[c] * scale->factor[c] + scale->summand[c];
  replace_constant(*layer.node, 1, layer.layout.dims, numbers);
  layer.weights = layer.node->input(1);

  onnx::Graph& graph = *node->graph;
  graph.set_input(*node, node->input(0) == &layer.output() ? 0 : 1, nullptr);
  graph.move_output(*node, 0, layer.last(), 0);
  graph.remove_node(*node);
  if (has_bias(*bias) || has_bias(*bias_of(layer))) set_bias(layer, *bias);
  return true;
}

}  // namespace

std::size_t fold_scales(onnx::Model& model) {
  infer_shapes(model);
  std::size_t folded = 0;
  for (WeightedLayer& layer : weighted_layers(model)) {
    while (fold_next(layer)) ++folded;
  }
  if (folded != 0) model.graph().remove_dead();
  return folded;
}

}  // namespace graft::quant

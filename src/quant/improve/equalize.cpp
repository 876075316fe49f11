// Computes the factors from the largest weights of each pair of channels, and applies them once at the end.
#include "quant/improve/equalize.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "onnx/shape_inference.hpp"
#include "quant/plan/weighted_layers.hpp"

namespace graft::quant {
namespace {

/// A layer and the factors by which its weights are scaled, for each input and each output channel.
struct Layer {
  WeightedLayer layer;
  /// The axes of `sizes`, a matrix with one number for each pair of input and output channel.
  WeightLayout pairs;
  std::vector<float> sizes;     ///< The largest absolute weight of each pair.
  std::vector<double> inputs;   ///< The factor of each input channel.
  std::vector<double> outputs;  ///< The factor of each output channel.
};

struct Pair {
  std::size_t first = 0;
  std::size_t second = 0;
  /// The number of input channels of the second layer that belong to one output channel of the first: 1, or the number
  /// of elements of a plane if a Flatten lies between them.
  std::size_t columns = 1;
};

Layer make_layer(const WeightedLayer& layer) {
  const WeightLayout& layout = layer.layout;
  Layer result{.layer = layer,
               .pairs = layout,
               .sizes = std::vector<float>(static_cast<std::size_t>(layout.dims[0] * layout.dims[1])),
               .inputs = std::vector<double>(layout.inputs(), 1.0),
               .outputs = std::vector<double>(layout.outputs(), 1.0)};
  result.pairs.dims.resize(2);
  const std::vector<double> weights = *layer.weights->constant()->numbers();
  const std::size_t taps = weights.size() / result.sizes.size();
  for (std::size_t i = 0; i < weights.size(); ++i) {
    result.sizes[i / taps] = std::max(result.sizes[i / taps], static_cast<float>(std::abs(weights[i])));
  }
  return result;
}

class Equalizer {
 public:
  explicit Equalizer(onnx::Model& model) {
    for (const WeightedLayer& layer : weighted_layers(model)) {
      if (layer.dequantize != nullptr || !layer.owns_weights() || !bias_of(layer)) continue;
      numbers_.emplace(layer.node, layers_.size());
      layers_.push_back(make_layer(layer));
    }
    for (std::size_t i = 0; i < layers_.size(); ++i) find_pair(i);
  }

  std::vector<Equalized> run() {
    // In long chains the last few percent need many rounds and make no difference to int8.
    constexpr int most_rounds = 20;
    constexpr double converged = 0.01;
    for (int round = 0; round < most_rounds; ++round) {
      double change = 0;
      for (const Pair& pair : pairs_) change = std::max(change, equalize_pair(pair));
      if (change < converged) break;
    }
    std::vector<Equalized> result;
    for (const Pair& pair : pairs_) result.push_back(describe_pair(pair));
    for (Layer& layer : layers_) apply(layer);
    return result;
  }

 private:
  void find_pair(std::size_t first) {
    const WeightedLayer& layer = layers_[first].layer;
    bool has_planes = layer.is_convolution();
    bool is_flat = false;
    const onnx::Value* value = &layer.output();
    onnx::Node* reader = only_reader(*value);
    while (reader != nullptr && !numbers_.contains(reader)) {
      const bool flattens = has_planes && reader->is("Flatten") && reader->int_or("axis", 1) == 1;
      if (!flattens && !lets_factors_through(*reader, has_planes)) return;
      is_flat = is_flat || flattens;
      has_planes = has_planes && !flattens;
      value = reader->output();
      reader = value == nullptr ? nullptr : only_reader(*value);
    }
    if (reader == nullptr || reader->input(0) != value) return;
    const std::size_t second = numbers_.at(reader);
    if (layers_[second].layer.is_convolution() != has_planes) return;
    const std::size_t outputs = layers_[first].outputs.size();
    const std::size_t inputs = layers_[second].inputs.size();
    const bool fits = is_flat ? inputs % outputs == 0 : inputs == outputs;
    if (fits) pairs_.push_back({.first = first, .second = second, .columns = inputs / outputs});
  }

  /// Computes, for each output channel c of the first layer, made[c], the largest absolute weight that computes it, and
  /// read[c], the largest absolute weight of the second layer that reads it, both with the current factors.
  void measure(const Pair& pair, std::vector<double>& made, std::vector<double>& read) const {
    const Layer& first = layers_[pair.first];
    const Layer& second = layers_[pair.second];
    made.assign(first.outputs.size(), 0.0);
    read.assign(first.outputs.size(), 0.0);
    const auto visit = [](const Layer& layer, auto use) {
      layer.pairs.for_each([&](std::size_t i, std::size_t input, std::size_t output) {
        use(input, output, static_cast<double>(layer.sizes[i]) * layer.inputs[input] * layer.outputs[output]);
      });
    };
    visit(first,
          [&](std::size_t /*input*/, std::size_t output, double size) { made[output] = std::max(made[output], size); });
    visit(second, [&](std::size_t input, std::size_t /*output*/, double size) {
      double& largest = read[input / pair.columns];
      largest = std::max(largest, size);
    });
  }

  void multiply(const Pair& pair, std::size_t channel, double factor) {
    layers_[pair.first].outputs[channel] *= factor;
    for (std::size_t i = 0; i < pair.columns; ++i) {
      layers_[pair.second].inputs[channel * pair.columns + i] /= factor;
    }
  }

  /// Scales each common channel of a pair so that both largest weights become equal. Returns the largest change, as the
  /// absolute binary logarithm of a factor.
  double equalize_pair(const Pair& pair) {
    // Without a limit, a channel with almost no effect would become as large as the other channels, and so would its
    // bias.
    constexpr double most = 1024;
    std::vector<double> made;
    std::vector<double> read;
    measure(pair, made, read);
    double change = 0;
    for (std::size_t c = 0; c < made.size(); ++c) {
      if (made[c] == 0 || read[c] == 0) continue;
      const double before = layers_[pair.first].outputs[c];
      const double factor = std::clamp(before * std::sqrt(read[c] / made[c]), 1 / most, most) / before;
      multiply(pair, c, factor);
      change = std::max(change, std::abs(std::log2(factor)));
    }
    return change;
  }

  [[nodiscard]] Equalized describe_pair(const Pair& pair) const {
    const Layer& first = layers_[pair.first];
    const auto [smallest, largest] = std::minmax_element(first.outputs.begin(), first.outputs.end());
    return {.first = onnx::describe(*first.layer.node),
            .second = onnx::describe(*layers_[pair.second].layer.node),
            .smallest = *smallest,
            .largest = *largest};
  }

  static void apply(Layer& layer) {
    WeightedLayer& target = layer.layer;
    const auto is_one = [](double factor) { return factor == 1; };
    const bool keeps_outputs = std::all_of(layer.outputs.begin(), layer.outputs.end(), is_one);
    if (keeps_outputs && std::all_of(layer.inputs.begin(), layer.inputs.end(), is_one)) return;
    std::vector<double> weights = *target.weights->constant()->numbers();
    target.layout.for_each([&](std::size_t i, std::size_t input, std::size_t output) {
      weights[i] *= layer.inputs[input] * layer.outputs[output];
    });
    std::vector<double> bias = *bias_of(target);
    replace_constant(*target.node, 1, target.layout.dims, weights);
    target.weights = target.node->input(1);
    const bool has_bias = std::any_of(bias.begin(), bias.end(), [](double number) { return number != 0; });
    if (keeps_outputs || !has_bias) return;
    for (std::size_t c = 0; c < bias.size(); ++c) bias[c] *= layer.outputs[c];
    set_bias(target, bias);
  }

  std::vector<Layer> layers_;
  std::vector<Pair> pairs_;
  std::unordered_map<const onnx::Node*, std::size_t> numbers_;
};

}  // namespace

std::vector<Equalized> equalize_across_layers(onnx::Model& model) {
  infer_shapes(model);
  return Equalizer(model).run();
}

}  // namespace graft::quant

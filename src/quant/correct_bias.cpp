// Means of channels, summed as the samples come.
#include "quant/correct_bias.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "graph/extract.hpp"
#include "graph/shape_inference.hpp"
#include "quant/weighted_layers.hpp"

namespace graft {
namespace {

/// Sums over all elements of a channel.
class ChannelSums {
 public:
  ChannelSums(std::size_t channels, std::size_t axes_behind)
      : axes_behind_(axes_behind), sums_(channels), squares_(channels) {}

  void add(const TensorData& tensor) {
    std::size_t plane = 1;
    for (std::size_t i = tensor.dims.size() - axes_behind_; i < tensor.dims.size(); ++i) {
      plane *= static_cast<std::size_t>(tensor.dims[i]);
    }
    const auto* numbers = reinterpret_cast<const float*>(tensor.bytes.data());
    const auto planes = static_cast<std::size_t>(tensor.element_count()) / std::max<std::size_t>(plane, 1);
    for (std::size_t i = 0; i < planes; ++i) add_plane(i % sums_.size(), numbers + i * plane, plane);
    elements_ += planes / sums_.size() * plane;
  }

  [[nodiscard]] double mean(std::size_t channel) const { return sums_[channel] / static_cast<double>(elements_); }

  [[nodiscard]] double deviation() const {
    double variance = 0;
    for (std::size_t c = 0; c < sums_.size(); ++c) {
      variance += squares_[c] / static_cast<double>(elements_) - mean(c) * mean(c);
    }
    return std::sqrt(std::max(variance, 0.0) / static_cast<double>(sums_.size()));
  }

 private:
  void add_plane(std::size_t channel, const float* numbers, std::size_t count) {
    double sum = 0;
    double squares = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const double number = numbers[i];
      sum += number;
      squares += number * number;
    }
    sums_[channel] += sum;
    squares_[channel] += squares;
  }

  std::size_t axes_behind_;
  std::vector<double> sums_;
  std::vector<double> squares_;
  std::size_t elements_ = 0;
};

using Sums = std::map<std::string, ChannelSums, std::less<>>;

Sums sum_outputs(const Model& model, const std::vector<WeightedLayer>& layers, const CalibrationData& data,
                 const ObserveOptions& options) {
  Sums sums;
  std::vector<std::string> tensors;
  for (const WeightedLayer& layer : layers) {
    tensors.push_back(layer.output().name);
    sums.emplace(tensors.back(), ChannelSums(layer.layout.outputs(), layer.axes_behind_channels()));
  }
  observe(model, tensors, data, options, [&](const TensorMap& seen) {
    for (auto& [name, sum] : sums) sum.add(seen.find(name)->second);
  });
  return sums;
}

bool is_f32_tensor(const Model& model, const std::string& name) {
  const Value* value = model.graph().find_local(name);
  return value != nullptr && value->producer != nullptr && value->type == ElementType::f32;
}

CorrectedBias correct(WeightedLayer& layer, const ChannelSums& found, const ChannelSums& wanted) {
  CorrectedBias result{.layer = describe(*layer.node), .tensor = layer.output().name};
  std::vector<double> bias = *bias_of(layer);
  for (std::size_t c = 0; c < bias.size(); ++c) {
    const double error = found.mean(c) - wanted.mean(c);
    if (!std::isfinite(error)) continue;
    bias[c] -= error;
    result.mean += std::abs(error) / static_cast<double>(bias.size());
    result.largest = std::max(result.largest, std::abs(error));
  }
  result.deviation = wanted.deviation();
  set_bias(layer, bias);
  return result;
}

/// Layers of a step do not depend on each other, only on those of steps before.
std::vector<std::vector<WeightedLayer>> in_steps(const Model& model, const std::vector<WeightedLayer>& layers) {
  std::unordered_map<const Node*, const WeightedLayer*> by_node;
  for (const WeightedLayer& layer : layers) by_node.emplace(layer.node, &layer);
  std::unordered_map<const Value*, std::size_t> layers_before;
  std::vector<std::vector<WeightedLayer>> steps;
  for (const Node* node : model.graph().nodes()) {
    std::size_t before = 0;
    for (const Value* value : values_read_by(*node)) {
      const auto found = layers_before.find(value);
      if (found != layers_before.end()) before = std::max(before, found->second);
    }
    if (const auto found = by_node.find(node); found != by_node.end()) {
      steps.resize(std::max(steps.size(), before + 1));
      steps[before++].push_back(*found->second);
    }
    for (const Value* output : node->outputs) layers_before.emplace(output, before);
  }
  return steps;
}

}  // namespace

std::vector<CorrectedBias> correct_bias(Model& quantized, const Model& reference, const CalibrationData& data,
                                        const ObserveOptions& options) {
  infer_shapes(quantized);
  Model inferred = reference.clone();
  infer_shapes(inferred);
  std::vector<WeightedLayer> layers = weighted_layers(quantized);
  std::erase_if(layers, [&](const WeightedLayer& layer) {
    return layer.dequantize == nullptr || !bias_of(layer) || !is_f32_tensor(quantized, layer.output().name) ||
           !is_f32_tensor(inferred, layer.output().name);
  });
  const std::int64_t samples = samples_of(data, options);
  if (layers.empty() || samples == 0) return {};

  std::vector<std::vector<WeightedLayer>> steps = in_steps(quantized, layers);
  const std::int64_t total = samples * (static_cast<std::int64_t>(steps.size()) + 1);
  std::int64_t before = 0;
  ObserveOptions observing = options;
  if (options.progress) {
    observing.progress = [&](std::int64_t done, std::int64_t /*of_one_run*/) {
      options.progress(before + done, total);
    };
  }
  std::vector<CorrectedBias> result;
  const Sums wanted = sum_outputs(inferred, layers, data, observing);
  for (std::vector<WeightedLayer>& step : steps) {
    before += samples;
    const Sums found = sum_outputs(quantized, step, data, observing);
    for (WeightedLayer& layer : step) {
      const std::string& name = layer.output().name;
      result.push_back(correct(layer, found.find(name)->second, wanted.find(name)->second));
    }
  }
  return result;
}

}  // namespace graft

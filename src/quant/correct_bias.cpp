// Means of channels, summed as the samples come; the int8 network is run from layer to layer.
#include "quant/correct_bias.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>

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

Sums sums_of(const std::vector<WeightedLayer>& layers) {
  Sums sums;
  for (const WeightedLayer& layer : layers) {
    sums.emplace(layer.output().name, ChannelSums(layer.layout.outputs(), layer.axes_behind_channels()));
  }
  return sums;
}

Sums sum_outputs(const Model& model, const std::vector<WeightedLayer>& layers, const CalibrationData& data,
                 const ObserveOptions& options) {
  Sums sums = sums_of(layers);
  std::vector<std::string> tensors;
  for (const auto& [name, sum] : sums) tensors.push_back(name);
  observe(model, tensors, data, options, [&](const TensorMap& seen) {
    for (auto& [name, sum] : sums) sum.add(seen.find(name)->second);
  });
  return sums;
}

bool is_f32_tensor(const Model& model, const std::string& name) {
  const Value* value = model.graph().find_local(name);
  return value != nullptr && value->producer != nullptr && value->type == ElementType::f32;
}

/// What has to be taken from each channel, in `shift`.
CorrectedBias correct(WeightedLayer& layer, const ChannelSums& found, const ChannelSums& wanted,
                      std::vector<double>& shift) {
  CorrectedBias result{.layer = describe(*layer.node), .tensor = layer.output().name};
  std::vector<double> bias = *bias_of(layer);
  shift.assign(bias.size(), 0);
  for (std::size_t c = 0; c < bias.size(); ++c) {
    const double error = found.mean(c) - wanted.mean(c);
    if (!std::isfinite(error)) continue;
    shift[c] = error;
    bias[c] -= error;
    result.mean += std::abs(error) / static_cast<double>(bias.size());
    result.largest = std::max(result.largest, std::abs(error));
  }
  result.deviation = wanted.deviation();
  set_bias(layer, bias);
  return result;
}

/// When a value is calculated, and the last time it is read: steps, of which each ends with its layers.
struct Life {
  std::int64_t made = 0;
  std::int64_t read = 0;
};

/// Layers of a step do not depend on each other, only on those of steps before.
struct Steps {
  std::vector<std::vector<WeightedLayer>> layers;
  std::map<std::string, Life, std::less<>> values;  ///< Those that depend on the network's inputs.
};

Steps in_steps(const Model& model, const std::vector<WeightedLayer>& layers) {
  std::unordered_map<const Node*, const WeightedLayer*> by_node;
  for (const WeightedLayer& layer : layers) by_node.emplace(&layer.last(), &layer);
  Steps steps;
  std::unordered_map<const Value*, std::size_t> layers_before;
  for (const Value* input : model.graph().inputs()) {
    if (input->initializer) continue;
    steps.values[input->name] = {.made = -1, .read = -1};
    layers_before.emplace(input, 0);
  }
  for (const Node* node : model.graph().nodes()) {
    std::size_t before = 0;
    bool varies = false;
    const std::vector<const Value*> read = values_read_by(*node);
    for (const Value* value : read) {
      const auto found = layers_before.find(value);
      if (found == layers_before.end()) continue;
      before = std::max(before, found->second);
      varies = true;
    }
    if (!varies) continue;
    const auto now = static_cast<std::int64_t>(before);
    for (const Value* value : read) {
      const auto found = steps.values.find(value->name);
      if (found != steps.values.end()) found->second.read = std::max(found->second.read, now);
    }
    if (const auto found = by_node.find(node); found != by_node.end()) {
      steps.layers.resize(std::max(steps.layers.size(), before + 1));
      steps.layers[before++].push_back(*found->second);
    }
    for (const Value* output : node->outputs) {
      if (output == nullptr) continue;
      layers_before.emplace(output, before);
      steps.values[output->name] = {.made = now, .read = now};
    }
  }
  return steps;
}

/// Takes from each channel what is too much.
void shift_channels(TensorData& tensor, const std::vector<double>& shift, std::size_t axes_behind) {
  std::size_t plane = 1;
  for (std::size_t i = tensor.dims.size() - axes_behind; i < tensor.dims.size(); ++i) {
    plane *= static_cast<std::size_t>(tensor.dims[i]);
  }
  std::string bytes(tensor.bytes.view());
  auto* numbers = reinterpret_cast<float*>(bytes.data());
  const auto elements = static_cast<std::size_t>(tensor.element_count());
  for (std::size_t i = 0; i < elements; ++i) {
    numbers[i] = static_cast<float>(numbers[i] - shift[i / plane % shift.size()]);
  }
  tensor.bytes = Bytes(std::move(bytes));
}

/// Runs the samples from one step to the next. Between them it holds what later steps read, as long as that fits into
/// memory; otherwise the next step begins where an earlier one ended.
class StepByStep {
 public:
  StepByStep(const Model& model, const Steps& steps, const CalibrationData& data, const ObserveOptions& options)
      : model_(model), steps_(steps), options_(options) {
    const std::int64_t count = samples_of(data, options);
    for (std::int64_t i = 0; i < count; ++i) held_.push_back(data.sample(i * data.count / count));
  }

  /// Shows the tensors that this step's layers give for each sample.
  void run(std::size_t step, const std::function<void(const TensorMap&)>& look) {
    std::vector<const Value*> inputs;
    for (const auto& [name, tensor] : held_.front()) inputs.push_back(model_.graph().find_local(name));
    std::vector<const Value*> outputs;
    for (const WeightedLayer& layer : steps_.layers[step]) outputs.push_back(&layer.output());
    const std::vector<const Value*> live = live_after(step);
    for (const Value* value : live) {
      const bool is_there = std::find(inputs.begin(), inputs.end(), value) != inputs.end() ||
                            std::find(outputs.begin(), outputs.end(), value) != outputs.end();
      if (!is_there) outputs.push_back(value);
    }
    CpuModel engine(extract(model_, inputs, outputs),
                    {.kernels = options_.kernels, .extra_outputs = {}, .threads = options_.threads});
    std::vector<TensorMap> next;
    std::size_t bytes = 0;
    const auto count = static_cast<std::int64_t>(held_.size());
    for (std::int64_t i = 0; i < count; ++i) {
      if (options_.progress) options_.progress(i, count);
      const TensorMap& sample = held_[static_cast<std::size_t>(i)];
      TensorMap found = engine.run(sample);
      look(found);
      if (bytes > most_bytes) continue;
      TensorMap& kept = next.emplace_back();
      for (const Value* value : live) {
        const auto made = found.find(value->name);
        const auto& [name, tensor] =
            *kept.emplace(value->name, made == found.end() ? sample.at(value->name) : std::move(made->second)).first;
        bytes += tensor.bytes.size();
      }
    }
    fits_ = bytes <= most_bytes && !live.empty();
    if (fits_) held_ = std::move(next);
  }

  /// What a layer of the last step gave, with its new bias.
  void shift(const WeightedLayer& layer, const std::vector<double>& shift) {
    if (!fits_) return;
    for (TensorMap& sample : held_) {
      const auto found = sample.find(layer.output().name);
      if (found != sample.end()) shift_channels(found->second, shift, layer.axes_behind_channels());
    }
  }

 private:
  static constexpr std::size_t most_bytes = std::size_t{1} << 30;

  [[nodiscard]] std::vector<const Value*> live_after(std::size_t step) const {
    std::vector<const Value*> live;
    const auto now = static_cast<std::int64_t>(step);
    for (const auto& [name, life] : steps_.values) {
      if (life.made <= now && now < life.read) live.push_back(model_.graph().find_local(name));
    }
    const bool can_be_held = std::all_of(live.begin(), live.end(), [](const Value* value) {
      return value->type && *value->type != ElementType::string && *value->type != ElementType::undefined;
    });
    return can_be_held ? live : std::vector<const Value*>();
  }

  const Model& model_;
  const Steps& steps_;
  const ObserveOptions& options_;
  std::vector<TensorMap> held_;  ///< For each sample.
  bool fits_ = false;
};

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

  Steps steps = in_steps(quantized, layers);
  const std::int64_t total = samples * (static_cast<std::int64_t>(steps.layers.size()) + 1);
  std::int64_t before = 0;
  ObserveOptions observing = options;
  if (options.progress) {
    observing.progress = [&](std::int64_t done, std::int64_t /*of_one_run*/) {
      options.progress(before + done, total);
    };
  }
  std::vector<CorrectedBias> result;
  const Sums wanted = sum_outputs(inferred, layers, data, observing);
  StepByStep run(quantized, steps, data, observing);
  for (std::size_t step = 0; step < steps.layers.size(); ++step) {
    before += samples;
    Sums found = sums_of(steps.layers[step]);
    run.run(step, [&](const TensorMap& seen) {
      for (auto& [name, sum] : found) sum.add(seen.find(name)->second);
    });
    for (WeightedLayer& layer : steps.layers[step]) {
      const std::string name = layer.output().name;
      std::vector<double> shift;
      result.push_back(correct(layer, found.find(name)->second, wanted.find(name)->second, shift));
      run.shift(layer, shift);
    }
  }
  return result;
}

}  // namespace graft

// Computes the means of channels while samples are run, and runs the int8 network layer by layer.
#include "quant/improve/correct_bias.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "onnx/extract.hpp"
#include "onnx/shape_inference.hpp"
#include "quant/plan/weighted_layers.hpp"

namespace graft::quant {
namespace {

/// Returns the number of contiguous elements of one channel: the product of the last `axes_after` sizes.
std::size_t plane_of(const onnx::TensorData& tensor, std::size_t axes_after) {
  std::size_t plane = 1;
  for (std::size_t i = tensor.dims.size() - axes_after; i < tensor.dims.size(); ++i) {
    plane *= static_cast<std::size_t>(tensor.dims[i]);
  }
  return plane;
}

/// Accumulates the sum and the sum of squares of each channel over all elements and samples.
class ChannelSums {
 public:
  ChannelSums(std::size_t channels, std::size_t axes_after)
      : axes_after_(axes_after), sums_(channels), squares_(channels) {}

  void add(const onnx::TensorData& tensor) {
    const std::size_t plane = plane_of(tensor, axes_after_);
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

  std::size_t axes_after_;
  std::vector<double> sums_;
  std::vector<double> squares_;
  std::size_t elements_ = 0;
};

using Sums = std::map<std::string, ChannelSums, std::less<>>;

Sums sums_of(const std::vector<WeightedLayer>& layers) {
  Sums sums;
  for (const WeightedLayer& layer : layers) {
    sums.emplace(layer.output().name, ChannelSums(layer.layout.outputs(), layer.axes_after_channels()));
  }
  return sums;
}

Sums sum_outputs(const runtime::Engine& engine, const onnx::Model& model, const std::vector<WeightedLayer>& layers,
                 const CalibrationData& data, const ObserveOptions& options) {
  Sums sums = sums_of(layers);
  std::vector<std::string> tensors;
  for (const auto& [name, sum] : sums) tensors.push_back(name);
  observe(engine, model, tensors, data, options, [&](const runtime::TensorMap& seen) {
    for (auto& [name, sum] : sums) sum.add(seen.find(name)->second);
  });
  return sums;
}

bool is_f32_tensor(const onnx::Model& model, const std::string& name) {
  const onnx::Value* value = model.graph().find_local(name);
  return value != nullptr && value->producer != nullptr && value->type == onnx::ElementType::f32;
}

/// Returns the mean of `found` minus the mean of `wanted` for each channel; 0 where the difference is not finite.
std::vector<double> errors_of(const ChannelSums& found, const ChannelSums& wanted, std::size_t channels) {
  std::vector<double> errors(channels);
  for (std::size_t c = 0; c < channels; ++c) {
    const double error = found.mean(c) - wanted.mean(c);
    errors[c] = std::isfinite(error) ? error : 0;
  }
  return errors;
}

CorrectedBias correct(WeightedLayer& layer, const std::vector<double>& errors, double deviation) {
  CorrectedBias result{.layer = onnx::describe(*layer.node), .tensor = layer.output().name, .deviation = deviation};
  std::vector<double> bias = *bias_of(layer);
  for (std::size_t c = 0; c < bias.size(); ++c) {
    bias[c] -= errors[c];
    result.mean += std::abs(errors[c]) / static_cast<double>(bias.size());
    result.largest = std::max(result.largest, std::abs(errors[c]));
  }
  set_bias(layer, bias);
  return result;
}

/// The index of the step in which a value is computed, and of the last step that reads it.
struct Life {
  std::int64_t made = 0;
  std::int64_t read = 0;
};

/// A division of the network into steps, each of which ends with layers whose bias is corrected. The layers of one step
/// depend only on layers of earlier steps, not on each other.
struct Steps {
  std::vector<std::vector<WeightedLayer>> layers;
  std::map<std::string, Life, std::less<>> values;  ///< The values that depend on the network's inputs.
};

Steps in_steps(const onnx::Model& model, const std::vector<WeightedLayer>& layers) {
  std::unordered_map<const onnx::Node*, const WeightedLayer*> by_node;
  for (const WeightedLayer& layer : layers) by_node.emplace(&layer.last(), &layer);
  Steps steps;
  std::unordered_map<const onnx::Value*, std::size_t> layers_before;
  for (const onnx::Value* input : model.graph().inputs()) {
    if (input->initializer) continue;
    steps.values[input->name] = {.made = -1, .read = -1};
    layers_before.emplace(input, 0);
  }
  for (const onnx::Node* node : model.graph().nodes()) {
    std::size_t before = 0;
    bool varies = false;
    const std::vector<const onnx::Value*> read = values_read_by(*node);
    for (const onnx::Value* value : read) {
      const auto found = layers_before.find(value);
      if (found == layers_before.end()) continue;
      before = std::max(before, found->second);
      varies = true;
    }
    const auto layer = by_node.find(node);
    if (layer != by_node.end()) {
      steps.layers.resize(std::max(steps.layers.size(), before + 1));
      steps.layers[before].push_back(*layer->second);
    }
    if (!varies) continue;
    const auto now = static_cast<std::int64_t>(before);
    for (const onnx::Value* value : read) {
      const auto found = steps.values.find(value->name);
      if (found != steps.values.end()) found->second.read = std::max(found->second.read, now);
    }
    for (const onnx::Value* output : node->outputs) {
      if (output == nullptr) continue;
      layers_before.emplace(output, layer == by_node.end() ? before : before + 1);
      steps.values[output->name] = {.made = now, .read = now};
    }
  }
  return steps;
}

/// Subtracts shift[c] from all elements of channel c of a tensor; `axes_after` is the number of axes after the channel
/// axis.
void shift_channels(onnx::TensorData& tensor, const std::vector<double>& shift, std::size_t axes_after) {
  const std::size_t plane = plane_of(tensor, axes_after);
  std::string bytes(tensor.bytes.view());
  auto* numbers = reinterpret_cast<float*>(bytes.data());
  const auto elements = static_cast<std::size_t>(tensor.element_count());
  for (std::size_t i = 0; i < elements; ++i) {
    numbers[i] = static_cast<float>(numbers[i] - shift[i / plane % shift.size()]);
  }
  tensor.bytes = onnx::Bytes(std::move(bytes));
}

/// Returns the common shape of tensor `name` over all samples, with a dynamic dimension where sizes differ, or nothing
/// if the ranks differ.
std::optional<Shape> common_shape(const std::vector<runtime::TensorMap>& samples, const std::string& name) {
  std::optional<Shape> common;
  for (const runtime::TensorMap& sample : samples) {
    const std::vector<std::int64_t>& dims = sample.find(name)->second.dims;
    if (!common) common.emplace(dims.begin(), dims.end());
    if (common->size() != dims.size()) return std::nullopt;
    for (std::size_t axis = 0; axis < dims.size(); ++axis) {
      if (!((*common)[axis] == Dim(dims[axis]))) (*common)[axis] = onnx::unknown_dim();
    }
  }
  return common;
}

/// Runs the samples step by step. After each step it keeps the tensors that later steps read, if they fit in memory.
/// Otherwise the next step is computed again from the last kept tensors, at first from the network's inputs.
class StepByStep {
 public:
  StepByStep(const runtime::Engine& engine, const onnx::Model& model, const Steps& steps, const CalibrationData& data,
             const ObserveOptions& options, std::size_t memory)
      : engine_(engine), model_(model), steps_(steps), data_(data), options_(options), memory_(memory) {
    for (const onnx::Value* input : model.graph().inputs()) {
      if (!input->initializer) begin_.push_back(input->name);
    }
  }

  /// Runs step number `step` on all samples, and calls `look` once per sample with the outputs of the step's layers.
  void run(std::size_t step, const std::function<void(const runtime::TensorMap&)>& look) {
    std::vector<const onnx::Value*> outputs;
    for (const WeightedLayer& layer : steps_.layers[step]) outputs.push_back(&layer.output());
    const std::vector<std::string> live = live_after(step);
    for (const std::string& name : live) {
      const onnx::Value* value = model_.graph().find_local(name);
      const bool is_there = std::find(begin_.begin(), begin_.end(), name) != begin_.end() ||
                            std::find(outputs.begin(), outputs.end(), value) != outputs.end();
      if (!is_there) outputs.push_back(value);
    }
    const std::unique_ptr<runtime::CompiledModel> compiled = engine_.compile(
        part_before(outputs), {.kernels = options_.kernels, .extra_outputs = {}, .threads = options_.threads});
    const std::int64_t count = samples_of(data_, options_);
    std::vector<runtime::TensorMap> next;
    bool fits = !live.empty();
    for (std::int64_t i = 0; i < count; ++i) {
      if (options_.progress) options_.progress(i, count);
      const auto at = static_cast<std::size_t>(i);
      runtime::TensorMap sample = held_.empty() ? data_.sample(i * data_.count / count) : std::move(held_[at]);
      compiled->run(sample, [&](const runtime::TensorMap& found) {
        look(found);
        if (i == 0) fits = fits && bytes_of(live, sample, found) * static_cast<std::size_t>(count) <= memory_;
        if (!fits) return;
        runtime::TensorMap& kept = next.emplace_back();
        for (const std::string& name : live) {
          const auto made = found.find(name);
          onnx::TensorData& copy = kept[name] = made == found.end() ? sample.find(name)->second : made->second;
          if (made != found.end()) copy.bytes = onnx::Bytes(std::string(copy.bytes.view()));
        }
      });
      if (!held_.empty() && !fits) held_[at] = std::move(sample);
    }
    if (options_.progress) options_.progress(count, count);
    if (!fits) return;
    held_ = std::move(next);
    begin_ = live;
  }

  /// Subtracts the errors of the channels from the kept output of a layer of the last step. Does nothing if that output
  /// is not kept.
  void take(const WeightedLayer& layer, const std::vector<double>& errors) {
    for (runtime::TensorMap& sample : held_) {
      const auto found = sample.find(layer.output().name);
      if (found != sample.end()) shift_channels(found->second, errors, layer.axes_after_channels());
    }
  }

 private:
  [[nodiscard]] onnx::Model part_before(const std::vector<const onnx::Value*>& outputs) const {
    std::vector<const onnx::Value*> inputs;
    for (const std::string& name : begin_) inputs.push_back(model_.graph().find_local(name));
    onnx::Model part = extract(model_, inputs, outputs);
    if (held_.empty()) return part;
    // Inferred or declared shapes may be less precise than those of the stored tensors, or wrong.
    for (onnx::Value* input : part.graph().inputs()) input->shape = common_shape(held_, input->name);
    return part;
  }

  [[nodiscard]] static std::size_t bytes_of(const std::vector<std::string>& names, const runtime::TensorMap& sample,
                                            const runtime::TensorMap& found) {
    std::size_t bytes = 0;
    for (const std::string& name : names) {
      const auto made = found.find(name);
      bytes += (made == found.end() ? sample.find(name) : made)->second.bytes.size();
    }
    return bytes;
  }

  /// Returns the names of the tensors that later steps read. Returns an empty list if the network cannot be cut after
  /// this step, because one of these tensors is not f32 or has an unknown shape.
  [[nodiscard]] std::vector<std::string> live_after(std::size_t step) const {
    std::vector<std::string> live;
    const auto now = static_cast<std::int64_t>(step);
    for (const auto& [name, life] : steps_.values) {
      if (life.made > now || life.read <= now) continue;
      const onnx::Value* value = model_.graph().find_local(name);
      if (!value->is_input && (value->type != onnx::ElementType::f32 || !value->shape)) return {};
      live.push_back(name);
    }
    return live;
  }

  const runtime::Engine& engine_;
  const onnx::Model& model_;
  const Steps& steps_;
  const CalibrationData& data_;
  const ObserveOptions& options_;
  std::size_t memory_;
  /// The names of the tensors from which the next step starts: kept tensors, or the network's inputs.
  std::vector<std::string> begin_;
  /// The kept tensors of each sample; empty while steps start from the network's inputs.
  std::vector<runtime::TensorMap> held_;
};

}  // namespace

std::vector<CorrectedBias> correct_bias(const runtime::Engine& engine, onnx::Model& quantized,
                                        const onnx::Model& reference, const CalibrationData& data,
                                        const ObserveOptions& options, std::size_t memory) {
  infer_shapes(quantized);
  onnx::Model inferred = reference.clone();
  infer_shapes(inferred);
  std::vector<WeightedLayer> layers = weighted_layers(quantized);
  std::erase_if(layers, [&](const WeightedLayer& layer) {
    return layer.dequantize == nullptr || !bias_of(layer) || !is_f32_tensor(quantized, layer.output().name) ||
           !is_f32_tensor(inferred, layer.output().name);
  });
  const std::int64_t samples = samples_of(data, options);
  if (layers.empty() || samples == 0) return {};

  for (onnx::Value* input : std::vector<onnx::Value*>(quantized.graph().inputs())) {
    if (input->initializer) quantized.graph().set_is_input(*input, false);
  }
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
  const Sums wanted = sum_outputs(engine, inferred, layers, data, observing);
  StepByStep run(engine, quantized, steps, data, observing, memory);
  for (std::size_t step = 0; step < steps.layers.size(); ++step) {
    before += samples;
    Sums found = sums_of(steps.layers[step]);
    run.run(step, [&](const runtime::TensorMap& seen) {
      for (auto& [name, sum] : found) sum.add(seen.find(name)->second);
    });
    for (WeightedLayer& layer : steps.layers[step]) {
      const std::string name = layer.output().name;
      const ChannelSums& expected = wanted.find(name)->second;
      const std::vector<double> errors = errors_of(found.find(name)->second, expected, layer.layout.outputs());
      result.push_back(correct(layer, errors, expected.deviation()));
      run.take(layer, errors);
    }
  }
  return result;
}

}  // namespace graft::quant

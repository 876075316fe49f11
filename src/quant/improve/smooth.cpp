// Finds the nodes whose constants can be divided, runs the data through the network once, then changes the constants.
#include "quant/improve/smooth.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "onnx/shape_inference.hpp"
#include "quant/plan/weighted_layers.hpp"

namespace graft::quant {
namespace {

using Divisors = std::vector<double>;

/// The channel axis of a tensor, given by the number of axes after it, and the number of channels.
struct ChannelAxis {
  std::size_t trailing = 0;  ///< The number of axes after the channel axis.
  std::size_t size = 0;
};

bool has_channels(const onnx::Value& value, const ChannelAxis& axis) {
  if (!value.shape || value.shape->size() <= axis.trailing) return false;
  const Dim& dim = (*value.shape)[value.shape->size() - 1 - axis.trailing];
  return dim.is_constant() && dim.value() == static_cast<std::int64_t>(axis.size);
}

bool holds_channels(const onnx::TensorData& data, const ChannelAxis& axis) {
  const std::size_t rank = data.dims.size();
  return rank > axis.trailing && data.dims[rank - 1 - axis.trailing] == static_cast<std::int64_t>(axis.size);
}

/// Divides the constant that is input `input` of a node by one divisor per channel. A constant with one number for all
/// channels is expanded to one per channel first.
void divide_constant(onnx::Node& node, std::size_t input, const ChannelAxis& axis, const Divisors& by) {
  const onnx::TensorData data = *node.input(input)->constant();
  std::vector<std::int64_t> dims = data.dims;
  std::vector<double> numbers = *data.numbers();
  if (!holds_channels(data, axis)) {
    dims.assign(std::max(dims.size(), axis.trailing + 1), 1);
    dims[dims.size() - 1 - axis.trailing] = static_cast<std::int64_t>(axis.size);
    numbers.assign(axis.size, numbers[0]);
  }
  std::size_t plane = 1;
  for (std::size_t i = dims.size() - axis.trailing; i < dims.size(); ++i) plane *= static_cast<std::size_t>(dims[i]);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] /= by[i / plane % axis.size];
  replace_constant(node, input, dims, numbers);
}

/// Divides the weights and the own bias of a layer by one divisor per output channel. A bias in an Add after the layer
/// is divided by divide_sum().
void divide_layer(onnx::Node& node, const Divisors& by) {
  WeightedLayer layer = *find_weighted_layer(node);
  std::vector<double> weights = *layer.weights->constant()->numbers();
  layer.layout.for_each([&](std::size_t i, std::size_t, std::size_t output) { weights[i] /= by[output]; });
  replace_constant(node, 1, layer.layout.dims, weights);
  if (node.input(2) == nullptr) return;
  std::vector<double> bias = *bias_of(layer);
  for (std::size_t c = 0; c < bias.size(); ++c) bias[c] /= by[c];
  set_bias(layer, bias);
}

/// The changes of constants that together divide a tensor by one divisor per channel. The changes are first collected
/// by divide() and then made by apply().
class Division {
 public:
  explicit Division(ChannelAxis axis) : axis_(axis) {}

  [[nodiscard]] const std::string& why_not() const { return why_not_; }
  /// Returns the number of neighboring channels of the tensor that must have the same divisor: 1, or the elements of a
  /// plane if the tensor is the result of a Flatten.
  [[nodiscard]] std::size_t columns() const { return columns_; }

  /// Changes the collected constants. by[i] is the divisor of the channels i * columns() to (i + 1) * columns() - 1.
  void apply(const Divisors& by) const {
    for (const auto& step : steps_) step(by);
  }

  /// Collects the changes that divide `value`, from its node backwards. Returns false, and sets why_not(), if the value
  /// cannot be divided by changing constants.
  bool divide(const onnx::Value& value) {
    onnx::Node* node = value.producer;
    if (node == nullptr) return fail(fmt::format("no node computes '{}'", value.name));
    if (node->is("LayerNormalization") || node->is("RMSNormalization")) return divide_normalization(*node);
    if (node->is("BatchNormalization")) return divide_batch_normalization(*node, value);
    if (node->is("Mul")) return divide_product(*node);
    if (node->is("Add")) return divide_sum(*node);
    if (lets_factors_through(*node, axis_.trailing != 0)) return divide_input(*node, 0);
    if (node->is("Flatten")) return divide_planes(*node);
    if (node->is("Reshape") && axis_.trailing == 0 && has_channels(value, axis_)) return divide_input(*node, 0);
    const auto layer = find_weighted_layer(*node);
    const bool is_own = layer && layer->dequantize == nullptr && layer->owns_weights() && bias_of(*layer);
    const bool fits = is_own && layer->axes_after_channels() == axis_.trailing && layer->layout.outputs() == axis_.size;
    if (!fits) return fail(fmt::format("{} cannot be scaled by channel", onnx::describe(*node)));
    steps_.emplace_back([node](const Divisors& by) { divide_layer(*node, by); });
    return true;
  }

 private:
  bool fail(std::string why_not) {
    if (why_not_.empty()) why_not_ = std::move(why_not);
    return false;
  }

  bool divide_input(const onnx::Node& node, std::size_t index) {
    const onnx::Value* value = node.input(index);
    if (value == nullptr || !has_channels(*value, axis_)) {
      return fail(fmt::format("the input of {} does not have the channels of the scaled layer", onnx::describe(node)));
    }
    if (only_reader(*value) != &node) return fail(fmt::format("other nodes read '{}'", value->name));
    return divide(*value);
  }

  bool add_constant(onnx::Node& node, std::size_t input, const ChannelAxis& axis) {
    const onnx::Value* value = node.input(input);
    const auto data = value == nullptr ? std::nullopt : value->constant();
    if (!data || data->type != onnx::ElementType::f32) return false;
    if (!holds_channels(*data, axis) && data->element_count() != 1) return false;
    steps_.emplace_back([&node, input, axis](const Divisors& by) { divide_constant(node, input, axis, by); });
    return true;
  }

  /// Collects the division of input 1 (scale) and, if it is present, input 2 (bias) of a normalization node. Returns
  /// false, and sets why_not(), if one of them is not a constant with one number per channel.
  bool add_scale_and_bias(onnx::Node& node) {
    const ChannelAxis axis{.trailing = 0, .size = axis_.size};
    for (std::size_t i : {std::size_t{1}, std::size_t{2}}) {
      const onnx::Value* value = node.input(i);
      if (i == 2 && value == nullptr) return true;
      const bool fits = value != nullptr && value->shape && value->shape->size() == 1 && has_channels(*value, axis);
      if (!fits || !add_constant(node, i, axis)) {
        return fail(
            fmt::format("the scale or the bias of {} is not a constant for each channel", onnx::describe(node)));
      }
    }
    return true;
  }

  bool divide_normalization(onnx::Node& node) {
    if (axis_.trailing != 0) {
      return fail(fmt::format("the channels of {} are not on the last axis", onnx::describe(node)));
    }
    return add_scale_and_bias(node);
  }

  bool divide_batch_normalization(onnx::Node& node, const onnx::Value& value) {
    const bool has_axis = value.rank() == static_cast<std::int64_t>(axis_.trailing + 2);
    if (!has_axis) return fail(fmt::format("the channels of {} are not on axis 1", onnx::describe(node)));
    if (node.int_or("training_mode", 0) != 0) return fail(fmt::format("{} is in training mode", onnx::describe(node)));
    return add_scale_and_bias(node);
  }

  bool divide_planes(const onnx::Node& node) {
    const onnx::Value* value = node.input(0);
    const bool is_whole = node.int_or("axis", 1) == 1 && axis_.trailing == 0 && value != nullptr && value->shape &&
                          value->shape->size() >= 2 && (*value->shape)[1].is_constant();
    const std::int64_t channels = is_whole ? (*value->shape)[1].value() : 0;
    if (channels <= 0 || axis_.size % static_cast<std::size_t>(channels) != 0) {
      return fail(fmt::format("the input of {} does not have the channels of the scaled layer", onnx::describe(node)));
    }
    columns_ = axis_.size / static_cast<std::size_t>(channels);
    axis_ = {.trailing = value->shape->size() - 2, .size = static_cast<std::size_t>(channels)};
    return divide_input(node, 0);
  }

  /// Collects the division of one factor of a Mul: a constant, or the result of another node. Returns false if neither
  /// factor can be divided.
  bool divide_product(onnx::Node& node) {
    if (add_constant(node, 0, axis_) || add_constant(node, 1, axis_)) return true;
    Division other = *this;
    if (divide_input(node, 0)) return true;
    if (!other.divide_input(node, 1)) return false;
    *this = std::move(other);
    return true;
  }

  bool divide_sum(onnx::Node& node) {
    if (add_constant(node, 1, axis_)) return divide_input(node, 0);
    if (add_constant(node, 0, axis_)) return divide_input(node, 1);
    return fail(fmt::format("{} adds two tensors", onnx::describe(node)));
  }

  ChannelAxis axis_;
  std::size_t columns_ = 1;
  std::vector<std::function<void(const Divisors&)>> steps_;
  std::string why_not_;
};

/// A tensor `x` and the layers that read it. After plan(), either `division` or `why_not` is set.
struct Readers {
  const onnx::Value* x = nullptr;
  std::vector<WeightedLayer> layers;
  ChannelAxis axis;
  std::vector<double> largest;  ///< The largest absolute value of each channel.
  std::optional<Division> division;
  std::string why_not;
};

std::vector<Readers> find_readers(onnx::Model& model, bool convolutions) {
  std::vector<Readers> all;
  for (WeightedLayer& layer : weighted_layers(model)) {
    if (layer.dequantize != nullptr || (layer.is_convolution() && !convolutions)) continue;
    const onnx::Value* x = layer.node->input(0);
    auto found = std::find_if(all.begin(), all.end(), [&](const Readers& readers) { return readers.x == x; });
    if (found == all.end()) {
      found = all.emplace(all.end());
      found->x = x;
      found->axis = {.trailing = layer.axes_after_channels(), .size = layer.layout.inputs()};
    }
    found->layers.push_back(std::move(layer));
  }
  return all;
}

/// Sets `readers.division` to the changes that divide the tensor, or `readers.why_not` to the reason why it cannot be
/// divided.
void plan(Readers& readers) {
  const bool is_only_theirs = readers.x->uses.size() == readers.layers.size() && !readers.x->is_output();
  const bool own = std::all_of(readers.layers.begin(), readers.layers.end(),
                               [](const WeightedLayer& layer) { return layer.owns_weights(); });
  const bool is_alike = std::all_of(readers.layers.begin(), readers.layers.end(), [&](const WeightedLayer& layer) {
    return layer.axes_after_channels() == readers.axis.trailing && layer.layout.inputs() == readers.axis.size;
  });
  if (!is_only_theirs || !is_alike) {
    readers.why_not = fmt::format("other nodes read '{}'", readers.x->name);
  } else if (!own) {
    readers.why_not = "its weights are shared";
  } else {
    Division division(readers.axis);
    if (division.divide(*readers.x)) {
      readers.division = std::move(division);
    } else {
      readers.why_not = division.why_not();
    }
  }
}

void measure(Readers& readers, const onnx::TensorData& tensor) {
  readers.largest.resize(readers.axis.size);
  std::size_t plane = 1;
  for (std::size_t i = tensor.dims.size() - readers.axis.trailing; i < tensor.dims.size(); ++i) {
    plane *= static_cast<std::size_t>(tensor.dims[i]);
  }
  const auto* numbers = reinterpret_cast<const float*>(tensor.bytes.data());
  const auto count = static_cast<std::size_t>(tensor.element_count());
  for (std::size_t i = 0; i < count; ++i) {
    double& largest = readers.largest[i / plane % readers.axis.size];
    const double size = std::abs(static_cast<double>(numbers[i]));
    if (std::isfinite(size)) largest = std::max(largest, size);
  }
}

/// Returns one divisor for each group of Division::columns() neighboring channels, by equation 4 of SmoothQuant with
/// the exponent `alpha`, limited to the range from 1/1024 to 1024; 1 for a channel that is always 0 or has no weight
/// other than 0.
Divisors divisors_of(const Readers& readers, double alpha) {
  // The limit keeps almost empty channels from becoming as large as the other channels.
  constexpr double most = 1024;
  const std::size_t columns = readers.division->columns();
  std::vector<double> sizes(readers.axis.size / columns);
  std::vector<double> weights(sizes.size());
  for (std::size_t c = 0; c < readers.largest.size(); ++c) {
    sizes[c / columns] = std::max(sizes[c / columns], readers.largest[c]);
  }
  for (const WeightedLayer& layer : readers.layers) {
    // An earlier tensor may have changed the weights since the readers were found.
    const std::vector<double> numbers = *layer.node->input(1)->constant()->numbers();
    layer.layout.for_each([&](std::size_t i, std::size_t input, std::size_t) {
      double& largest = weights[input / columns];
      largest = std::max(largest, std::abs(numbers[i]));
    });
  }
  Divisors result(sizes.size(), 1.0);
  for (std::size_t c = 0; c < result.size(); ++c) {
    if (sizes[c] == 0 || weights[c] == 0) continue;
    result[c] = std::clamp(std::pow(sizes[c], alpha) / std::pow(weights[c], 1 - alpha), 1 / most, most);
  }
  return result;
}

void multiply_weights(const WeightedLayer& layer, const Divisors& factors, std::size_t columns) {
  std::vector<double> numbers = *layer.node->input(1)->constant()->numbers();
  layer.layout.for_each([&](std::size_t i, std::size_t input, std::size_t) { numbers[i] *= factors[input / columns]; });
  replace_constant(*layer.node, 1, layer.layout.dims, numbers);
}

}  // namespace

std::vector<Smoothed> smooth_quant(const runtime::Engine& engine, onnx::Model& model, const CalibrationData& data,
                                   const SmoothOptions& options) {
  infer_shapes(model);
  std::vector<Readers> all = find_readers(model, options.convolutions);
  std::vector<std::string> tensors;
  for (Readers& readers : all) {
    plan(readers);
    if (readers.division) tensors.push_back(readers.x->name);
  }
  if (!tensors.empty() && samples_of(data, options.observe) != 0) {
    observe(engine, model, tensors, data, options.observe, [&](const runtime::TensorMap& seen) {
      for (Readers& readers : all) {
        if (readers.division) measure(readers, seen.find(readers.x->name)->second);
      }
    });
  }
  std::vector<Smoothed> result;
  for (const Readers& readers : all) {
    Smoothed smoothed{.tensor = readers.x->name, .layers = {}, .why_not = readers.why_not};
    for (const WeightedLayer& layer : readers.layers) smoothed.layers.push_back(onnx::describe(*layer.node));
    if (readers.division && !readers.largest.empty()) {
      const Divisors divisors = divisors_of(readers, options.alpha);
      smoothed.smallest = *std::min_element(divisors.begin(), divisors.end());
      smoothed.largest = *std::max_element(divisors.begin(), divisors.end());
      for (const WeightedLayer& layer : readers.layers) multiply_weights(layer, divisors, readers.division->columns());
      readers.division->apply(divisors);
    }
    result.push_back(std::move(smoothed));
  }
  return result;
}

}  // namespace graft::quant

// Emulates a narrow type: adds rounding nodes after each tensor and rounds the weights.
#include "verify/localize/emulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "graft/error.hpp"
#include "onnx/elements.hpp"
#include "onnx/functions.hpp"
#include "onnx/node_ref.hpp"
#include "onnx/operator_calls.hpp"
#include "onnx/opset.hpp"
#include "onnx/schema.hpp"
#include "onnx/shape_inference.hpp"
#include "verify/compare/compare.hpp"
#include "verify/compare/figures.hpp"
#include "verify/compare/match_tensors.hpp"
#include "verify/localize/partial_runs.hpp"

namespace graft::verify {
namespace {

/// The lowest opset that has everything that emulation uses: Cast to bf16, Round, and Clip with inputs.
constexpr std::int64_t oldest_opset = 13;
/// The metadata key that marks the nodes that emulation adds.
constexpr std::string_view rounding_note = "graft.rounding";
constexpr double lowest_step = -128;
constexpr double highest_step = 127;

onnx::ElementType type_of(Precision precision) {
  return precision == Precision::f16 ? onnx::ElementType::f16 : onnx::ElementType::bf16;
}

/// Returns the smallest normal number of f16 or bf16. Smaller numbers are represented with fewer digits.
double smallest_normal(Precision precision) {
  constexpr int f16_exponent = -14;
  constexpr int bf16_exponent = -126;
  return std::ldexp(1.0, precision == Precision::f16 ? f16_exponent : bf16_exponent);
}

double to_step(double value, double scale) {
  return std::clamp(std::nearbyint(value / scale), lowest_step, highest_step);
}

/// Accumulates the effect of rounding a tensor (overflow, values that become 0, error), number by number.
class RoundingTally {
 public:
  explicit RoundingTally(Precision precision) : smallest_normal_(smallest_normal(precision)) {}

  void add(double number, double rounded) {
    if (!std::isfinite(number) || number == 0) return;
    if (!std::isfinite(rounded)) {
      ++effect_.overflow;
      return;
    }
    if (rounded == 0) {
      ++effect_.underflow;
    } else if (std::abs(number) < smallest_normal_ && rounded != number) {
      ++effect_.subnormal;
    }
    add_noise(number, rounded);
  }
  void add_step(double number, double scale) {
    if (!std::isfinite(number) || number == 0) return;
    const double rounded = to_step(number, scale) * scale;
    constexpr double half_a_step = 0.5;
    const double steps = number / scale;
    if (rounded == 0) {
      ++effect_.underflow;
    } else if (steps > highest_step + half_a_step || steps < lowest_step - half_a_step) {
      ++effect_.saturated;
    }
    add_noise(number, rounded);
  }
  [[nodiscard]] RoundingEffect effect() const {
    RoundingEffect effect = effect_;
    effect.snr_db = decibels_between(signal_, noise_);
    return effect;
  }

 private:
  void add_noise(double number, double rounded) {
    signal_ += square_of(number);
    noise_ += square_of(number - rounded);
  }

  double smallest_normal_;
  RoundingEffect effect_;
  SumOfSquares signal_ = 0;
  SumOfSquares noise_ = 0;
};

/// Calls f(number, rounded) for each element of the tensor, both as double, where `rounded` is the element in f16 or
/// bf16.
template <class F>
void for_each_rounded(const onnx::TensorData& tensor, Precision precision, F&& f) {
  if (precision == Precision::f16) {
    for_each_number(
        tensor, [&](auto number) { f(static_cast<double>(number), onnx::round_to_f16(static_cast<float>(number))); });
  } else {
    for_each_number(
        tensor, [&](auto number) { f(static_cast<double>(number), onnx::round_to_bf16(static_cast<float>(number))); });
  }
}

/// Returns whether `use` is an input of a Resize other than its data, such as scales or sizes. These must not be
/// rounded, and ONNX allows only f32 for scales.
bool is_size(const onnx::Use& use) { return use.node->is("Resize") && use.index != 0; }

bool is_f32(const onnx::Value& value) { return value.type == onnx::ElementType::f32; }

/// Returns the axis of output channels if `use` is the use of a constant of this rank as a weight of a Conv,
/// ConvTranspose, MatMul or Gemm; otherwise nothing.
std::optional<std::size_t> channel_axis(const onnx::Use& use, std::size_t rank) {
  if (use.index != 1 || rank < 2) return std::nullopt;
  const onnx::Node& node = *use.node;
  if (node.is("Conv")) return 0;
  if (node.is("ConvTranspose")) return 1;
  if (node.is("MatMul")) return rank - 1;
  if (node.is("Gemm")) return node.int_or("transB", 0) != 0 ? 0 : 1;
  return std::nullopt;
}

/// Returns the tensor rounded to int8 steps, with one scale for each index of `axis`, and converted back to f32.
onnx::TensorData int8_per_channel(const onnx::TensorData& tensor, std::size_t axis) {
  std::vector<double> numbers = *tensor.numbers();
  std::size_t inner = 1;
  for (std::size_t i = axis + 1; i < tensor.dims.size(); ++i) inner *= static_cast<std::size_t>(tensor.dims[i]);
  const auto channels = static_cast<std::size_t>(tensor.dims[axis]);
  std::vector<double> largest(channels, 0);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    double& most = largest[i / inner % channels];
    if (std::isfinite(numbers[i])) most = std::max(most, std::abs(numbers[i]));
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const double scale = largest[i / inner % channels] / highest_step;
    if (scale > 0) numbers[i] = to_step(numbers[i], scale) * scale;
  }
  return onnx::TensorData::from_numbers(tensor.type, tensor.dims, numbers);
}

std::optional<onnx::TensorData> rounded_weight(const onnx::Value& value, const onnx::TensorData& tensor,
                                               Precision precision) {
  if (std::any_of(value.uses.begin(), value.uses.end(), is_size)) return std::nullopt;
  if (precision != Precision::int8) {
    const onnx::TensorData narrow = onnx::TensorData::from_numbers(type_of(precision), tensor.dims, *tensor.numbers());
    return onnx::TensorData::from_numbers(onnx::ElementType::f32, tensor.dims, *narrow.numbers());
  }
  for (const onnx::Use& use : value.uses) {
    if (const auto axis = channel_axis(use, tensor.dims.size())) return int8_per_channel(tensor, *axis);
  }
  return std::nullopt;
}

/// Calls `visit` with `graph` and with all subgraphs of its nodes, nested ones included.
template <class AnyGraph, class Visit>
void for_each_graph(AnyGraph& graph, const Visit& visit) {
  visit(graph);
  for (const onnx::Node* node : graph.nodes()) {
    for (onnx::Graph* body : node->subgraphs()) for_each_graph(*body, visit);
  }
}

/// Returns the value of a constant that a narrow type would round: an f32 constant that a node reads. Returns nothing
/// for other values.
std::optional<onnx::TensorData> weight_of(const onnx::Value& value) {
  if (value.uses.empty()) return std::nullopt;
  auto constant = value.constant();
  if (constant && constant->type != onnx::ElementType::f32) constant.reset();
  return constant;
}

void round_weights(onnx::Graph& graph, Precision precision) {
  for (onnx::Value* value : graph.values()) {
    const auto constant = weight_of(*value);
    if (!constant) continue;
    auto rounded = rounded_weight(*value, *constant, precision);
    if (!rounded) continue;
    if (value->producer == nullptr) {
      graph.set_initializer(*value, std::move(*rounded));
    } else {
      value->producer->attributes.clear();
      value->producer->attributes.emplace("value", onnx::NodeAttribute(onnx::AttributeData(std::move(*rounded))));
    }
  }
}

/// Adds nodes that round `value` and returns their result. Sets `first` to the first of these nodes. `scale` is used
/// for int8 only.
onnx::Value* add_rounding(onnx::Graph& graph, onnx::Value& value, Precision precision, double scale,
                          onnx::Node*& first) {
  if (precision != Precision::int8) {
    first = graph.add_node("Cast", {&value}, {value.name + "/" + std::string(to_string(precision))});
    first->attributes.emplace("to",
                              onnx::NodeAttribute(onnx::AttributeData(static_cast<std::int64_t>(type_of(precision)))));
    onnx::Node* back = graph.add_node("Cast", {first->output()}, {value.name});
    back->attributes.emplace(
        "to", onnx::NodeAttribute(onnx::AttributeData(static_cast<std::int64_t>(onnx::ElementType::f32))));
    return back->output();
  }
  const auto constant = [&](const char* what, double number) {
    return graph.add_constant(value.name + "/" + what, onnx::TensorData::scalar_of(onnx::ElementType::f32, number));
  };
  onnx::Value* step = constant("scale", scale);
  first = graph.add_node("Div", {&value, step}, {value.name + "/steps"});
  onnx::Node* whole = graph.add_node("Round", {first->output()}, {value.name + "/whole"});
  onnx::Node* clipped =
      graph.add_node("Clip", {whole->output(), constant("lowest", lowest_step), constant("highest", highest_step)},
                     {value.name + "/int8"});
  return graph.add_node("Mul", {clipped->output(), step}, {value.name})->output();
}

/// Returns the f32 tensors of a graph that are rounded: inputs of the model without a default, and results of nodes
/// that compute (not those that only move data).
std::vector<onnx::Value*> tensors_to_round(const onnx::Graph& graph) {
  std::vector<onnx::Value*> tensors;
  for (onnx::Value* input : graph.inputs()) {
    if (graph.parent() == nullptr && is_f32(*input) && !input->initializer) tensors.push_back(input);
  }
  for (const onnx::Node* node : graph.nodes()) {
    if (has_trait(*node, onnx::trait::moves_data)) continue;  // The node reads tensors that are already rounded.
    for (onnx::Value* output : node->outputs) {
      if (output != nullptr && is_f32(*output) && !output->constant()) tensors.push_back(output);
    }
  }
  return tensors;
}

void round_tensors(onnx::Graph& graph, Precision precision, const Scales& scales) {
  const std::vector<onnx::Node*> computing = graph.nodes();
  for (onnx::Value* value : tensors_to_round(graph)) {
    if (std::any_of(value->uses.begin(), value->uses.end(), is_size)) continue;
    const auto scale = scales.find(value->name);
    if (precision == Precision::int8 && scale == scales.end()) {
      throw Error(Error::Kind::internal, fmt::format("no scale for '{}'", value->name));
    }
    const std::string name = value->name;
    const bool is_input = value->is_input;
    onnx::Node* first = nullptr;
    onnx::Value* rounded = add_rounding(graph, *value, precision, scale == scales.end() ? 1 : scale->second, first);
    graph.replace_all_uses(*value, *rounded, first);
    if (!is_input && rounded->name != name) {
      graph.rename(*value, graph.unique_name(name + "/exact"));
      graph.rename(*rounded, name);
    }
  }
  const std::set<const onnx::Node*> known(computing.begin(), computing.end());
  for (onnx::Node* node : graph.nodes()) {
    if (!known.contains(node)) node->metadata.emplace(rounding_note, to_string(precision));
  }
  graph.topological_sort();
}

}  // namespace

double largest_of(Precision precision) {
  constexpr double largest_f16 = 65504;
  constexpr double bf16_digits = 255;
  constexpr int bf16_exponent = 120;
  switch (precision) {
    case Precision::f16: return largest_f16;
    case Precision::bf16: return std::ldexp(bf16_digits, bf16_exponent);
    case Precision::int8: return highest_step;
    case Precision::f8: break;
  }
  throw Error(Error::Kind::internal, "largest_of: f8 is not emulated");
}

Scales int8_scales(const runtime::Engine& engine, const onnx::Model& model, const runtime::TensorMap& inputs,
                   runtime::OperatorKernels kernels, int threads, std::int64_t memory) {
  PartialRuns runs(engine, model, kernels, threads);
  runs.infer(inputs);
  Scales scales;
  const auto add = [&](const std::string& name, const TensorRange& range) {
    scales[name] = range.largest() > 0 ? range.largest() / highest_step : 1;
  };
  for (const auto& [name, tensor] : inputs) add(name, range_of(tensor));
  std::vector<const onnx::Value*> tensors;
  for (const onnx::Value* tensor : tensors_of(runs.model())) {
    if (!tensor->type || is_f32(*tensor)) tensors.push_back(tensor);
  }
  for (const auto& [value, range] : runs.ranges(tensors, inputs, memory)) add(value->name, range);
  return scales;
}

onnx::Model with_open_functions(const onnx::Model& model) {
  onnx::Model opened = model.clone();
  upgrade_opset(opened, std::max(opened.graph().opset(), oldest_opset));
  inline_functions(opened, {.which = onnx::is_plain_call});
  infer_shapes(opened);
  return opened;
}

onnx::Model emulate(const onnx::Model& model, Precision precision, const Scales& scales) {
  onnx::Model emulated = with_open_functions(model);
  emulated.source = fmt::format("{} in {}", model.source, to_string(precision));
  if (precision == Precision::int8) {
    round_weights(emulated.graph(), precision);
    round_tensors(emulated.graph(), precision, scales);
  } else {
    for_each_graph(emulated.graph(), [&](onnx::Graph& graph) {
      round_weights(graph, precision);
      round_tensors(graph, precision, scales);
    });
  }
  return emulated;
}

std::vector<LargeConstant> large_constants(const onnx::Model& model, Precision precision) {
  std::vector<LargeConstant> found;
  if (precision == Precision::int8) return found;
  const onnx::Model opened = with_open_functions(model);
  for_each_graph(opened.graph(), [&](const onnx::Graph& graph) {
    for (const onnx::Value* value : graph.values()) {
      const auto constant = weight_of(*value);
      if (!constant || std::any_of(value->uses.begin(), value->uses.end(), is_size)) continue;
      const std::int64_t overflow = rounding_effect(*constant, precision).overflow;
      if (overflow == 0) continue;
      found.push_back({.name = value->name,
                       .node = ref_of(*value->uses.front().node),
                       .largest = largest_finite(*constant),
                       .overflow = overflow,
                       .elements = constant->element_count()});
    }
  });
  return found;
}

const onnx::Node& computing_node(const onnx::Node& node) {
  const onnx::Node* at = &node;
  while (at->metadata.contains(rounding_note) && at->input(0)->producer != nullptr) at = at->input(0)->producer;
  return *at;
}

RoundingEffect rounding_effect(const onnx::TensorData& tensor, Precision precision, double scale) {
  RoundingTally tally(precision);
  if (!is_floating_point(tensor.type)) return {};
  if (precision == Precision::int8) {
    for_each_number(tensor, [&](auto number) { tally.add_step(static_cast<double>(number), scale); });
  } else {
    for_each_rounded(tensor, precision, [&](double number, double rounded) { tally.add(number, rounded); });
  }
  return tally.effect();
}

void TypeEffect::add(const TypeEffect& other) {
  range.add(other.range);
  rounding.add(other.rounding);
  all_whole = all_whole && other.all_whole;
  changed = changed || other.changed;
}

TypeEffect type_effect(const onnx::TensorData& tensor, Precision precision) {
  RangeTally range;
  RoundingTally rounding(precision);
  bool all_whole = true;
  bool changed = false;
  for_each_rounded(tensor, precision, [&](double number, double rounded) {
    range.add(number);
    rounding.add(number, rounded);
    if (!all_whole) return;
    all_whole = number == std::trunc(number);
    changed = changed || number != rounded;
  });
  return {.range = range.of(tensor.element_count()),
          .rounding = rounding.effect(),
          .all_whole = all_whole,
          .changed = changed};
}

}  // namespace graft::verify

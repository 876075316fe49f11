// Computes the attributes of the node that a rule inserts: those of the rule, those that a single replaced node already
// has, and, for `int8`, the scales of the input, the output and the weight.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "graft/operator/registry.hpp"
#include "onnx/schema.hpp"
#include "onnx/text.hpp"
#include "rules/captured_values.hpp"
#include "rules/replace/new_node.hpp"

namespace graft::rules {
namespace {

/// Returns the value of `kernel_shape` from the shape of the weight if a Conv does not have this attribute; nothing for
/// other attributes. Throws Error if `pads` is missing and auto_pad depends on the input size. `own` is the name of the
/// attribute in the new operator.
std::optional<RuleValue::Data> convolution_default(const Rule& rule, const onnx::Node& node, std::string_view attribute,
                                                   std::string_view own) {
  if (attribute == "pads") {
    const std::string padding = node.string_or("auto_pad", "NOTSET");
    if (padding == "NOTSET" || padding == "VALID") return std::nullopt;
    fail_at(rule.place, fmt::format("{}: its padding is `auto_pad` {}, which depends on the size of its input; set "
                                    "`{}` under `attributes` of the rule",
                                    onnx::describe(node), padding, own));
  }
  const onnx::Value* weight = node.input(1);
  if (attribute != "kernel_shape" || weight == nullptr || !weight->shape) return std::nullopt;
  std::vector<std::int64_t> kernel;
  for (std::size_t axis = 2; axis < weight->shape->size(); ++axis) {
    if (!(*weight->shape)[axis].is_constant()) return std::nullopt;
    kernel.push_back((*weight->shape)[axis].value());
  }
  return kernel;
}

/// Adds to `given` the attributes of a standard node, under the names that they have in the Graft operator `type`,
/// unless the rule sets them. Does nothing if the node is not the standard operator that computes the same as `type`.
void add_native_attributes(const Rule& rule, const onnx::Node& node, const OperatorType& type, RuleAttributes& given) {
  const auto found =
      std::find_if(type.native_equivalents.begin(), type.native_equivalents.end(),
                   [&](const NativeEquivalent& native) { return node.domain.empty() && native.op == node.op_type; });
  if (found == type.native_equivalents.end()) return;
  for (const auto& [standard, own] : found->attributes) {
    if (find_attribute(given, own) != nullptr) continue;
    auto data = attribute_data(node, standard);
    if (!data && node.is("Conv")) data = convolution_default(rule, node, standard, own);
    if (data) given.emplace_back(std::string(own), RuleValue{rule.place, std::move(*data)});
  }
}

/// Replaces the weight, whose elements are `numbers`, by int8 values with zero point 0 and one scale per index of axis
/// 0, and returns these scales.
std::vector<double> quantize_channels(onnx::TensorData& weight, const std::vector<double>& numbers) {
  const auto channels = static_cast<std::size_t>(weight.dims[0]);
  const std::size_t size = numbers.size() / channels;
  std::vector<double> scales;
  std::vector<double> steps;
  for (std::size_t channel = 0; channel < channels; ++channel) {
    double largest = 0;
    for (std::size_t i = 0; i < size; ++i) largest = std::max(largest, std::abs(numbers[channel * size + i]));
    // The scale is rounded to f32 first, so that the steps are those of the scale that is stored.
    const double scale = largest > 0 ? static_cast<double>(static_cast<float>(largest / 127)) : 1.0;
    scales.push_back(scale);
    for (std::size_t i = 0; i < size; ++i) {
      steps.push_back(std::clamp(std::nearbyint(numbers[channel * size + i] / scale), -127.0, 127.0));
    }
  }
  weight = onnx::TensorData::from_numbers(onnx::ElementType::i8, weight.dims, steps);
  return scales;
}

/// Sets the scale attributes of a new operator that computes in int8, and replaces its constant weight by int8 with a
/// scale for each channel. Other constants stay f32. Throws Error if the input is not f32.
void prepare_int8(const Rule& rule, const Region& region, NewNode& node, RuleAttributes& given) {
  const onnx::Value* x = node.inputs.empty() ? nullptr : region.graph->find(node.inputs[0].name);
  if (x == nullptr || x->type != onnx::ElementType::f32) {
    fail_at(rule.place, fmt::format("{}: int8 requires an input of type f32; the type of its input is {}", region.name,
                                    x == nullptr || !x->type ? "unknown" : to_string(*x->type)));
  }
  given.emplace_back(node.with.input_scale(), RuleValue{rule.place, node.int8->input_scale});
  given.emplace_back(node.with.output_scale(), RuleValue{rule.place, node.int8->output_scale});
  const std::optional<Int8Weight>& stored = node.with.graft->int8_weight;
  if (!stored || node.inputs.size() <= stored->input) return;
  NodeInput& weight = node.inputs[stored->input];
  const auto numbers = weight.constant ? weight.constant->numbers() : std::nullopt;
  if (!numbers || weight.constant->dims.empty() || weight.constant->dims[0] == 0) {
    fail_at(
        rule.place,
        fmt::format(
            "{}: its weights '{}' must be a constant with at least one channel, or they cannot be quantized to int8",
            region.name, weight.name));
  }
  const std::vector<double> scales = quantize_channels(*weight.constant, *numbers);
  weight.name += "_int8";
  weight.is_new = true;
  given.emplace_back(std::string(stored->scales), RuleValue{rule.place, scales});
}

}  // namespace

void plan_attributes(const Rule& rule, const Region& region, NewNode& node) {
  RuleAttributes given = evaluate_attributes(rule.attributes, region);
  if (node.with.graft == nullptr) {
    const onnx::OperatorSchema* schema = node.with.schema();
    for (const auto& [name, value] : given) {
      node.attributes[name] =
          to_typed_attribute(value, name, schema == nullptr ? std::nullopt : schema->attribute_type(name));
    }
    if (node.with.is_plugin) {
      node.attributes["plugin_version"] = node.with.plugin_version;
      node.attributes["plugin_namespace"] = node.with.plugin_namespace;
    }
    return;
  }
  if (region.match == nullptr && region.nodes.size() == 1) {
    add_native_attributes(rule, *region.nodes.front(), *node.with.graft, given);
  }
  if (node.int8) prepare_int8(rule, region, node, given);
  std::vector<NamedAttribute> named;
  for (const auto& [name, value] : given) {
    named.push_back({name, to_typed_attribute(value, name, node.with.graft->find_attribute(name)->type)});
  }
  std::unique_ptr<Operator> op;
  if (const Status status = make_operator(*node.with.graft, nullptr, named, op); !status.ok()) {
    fail_at(rule.place, fmt::format("{}: {}: {}", region.name, node.with.to_string(), status.message()));
  }
  node.op = std::move(op);
}

}  // namespace graft::rules

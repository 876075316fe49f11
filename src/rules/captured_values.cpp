#include "rules/captured_values.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <vector>

#include "onnx/operator_node.hpp"
#include "onnx/standard_operators.hpp"

namespace graft::rules {
namespace {

std::optional<RuleValue::Data> to_data(const onnx::TensorData& tensor) {
  if (const auto integers = tensor.ints()) {
    if (tensor.dims.empty()) return integers->front();
    return *integers;
  }
  if (const auto numbers = tensor.numbers()) {
    if (tensor.dims.empty()) return numbers->front();
    return *numbers;
  }
  return std::nullopt;
}

RuleValue::Data to_data(const AttributeValue& value) {
  switch (graft::type_of(value)) {
    case AttributeType::float_number: return static_cast<double>(std::get<float>(value));
    case AttributeType::integer: return std::get<std::int64_t>(value);
    case AttributeType::text: return std::get<std::string>(value);
    case AttributeType::integers: return std::get<std::vector<std::int64_t>>(value);
    case AttributeType::float_numbers: break;
  }
  const auto& floats = std::get<std::vector<float>>(value);
  return std::vector<double>(floats.begin(), floats.end());
}

std::optional<RuleValue::Data> constant_data(const onnx::TensorData& tensor) {
  if (tensor.strings && tensor.strings->size() == 1) return tensor.strings->front();
  return to_data(tensor);
}

std::optional<RuleValue::Data> captured_value(const Region& region, const std::string& name) {
  if (region.match != nullptr) {
    const auto found = region.match->constants.find(name);
    return found == region.match->constants.end() ? std::nullopt : constant_data(found->second);
  }
  if (region.nodes.size() != 1) return std::nullopt;
  return attribute_data(*region.nodes.front(), name);
}

}  // namespace

std::optional<RuleValue::Data> attribute_data(const onnx::Node& node, std::string_view name) {
  if (const onnx::NodeAttribute* attribute = node.attribute(name)) {
    if (const auto value = attribute->value()) return to_data(*value);
    const auto* tensor = attribute->get<onnx::TensorData>();
    return tensor == nullptr ? std::nullopt : to_data(*tensor);
  }
  if (!node.domain.empty()) return std::nullopt;
  for (const onnx::AttributeInput& entry : onnx::attribute_inputs(node.op_type)) {
    const onnx::Value* value = entry.attribute == name ? node.input(entry.input) : nullptr;
    if (value == nullptr) continue;
    const auto constant = value->constant();
    return constant ? to_data(*constant) : std::nullopt;
  }
  const auto value = onnx::default_attribute(node.op_type, name, node.graph->opset());
  return value ? std::optional(to_data(*value)) : std::nullopt;
}

RuleAttributes evaluate_attributes(const RuleAttributes& attributes, const Region& region) {
  RuleAttributes result;
  for (const auto& [name, value] : attributes) {
    result.emplace_back(name, evaluate(value, [&](const std::string& what) { return captured_value(region, what); }));
  }
  return result;
}

AttributeValue to_typed_attribute(const RuleValue& value, const std::string& name, std::optional<AttributeType> type) {
  const auto result = type ? to_attribute(value, *type) : std::optional(to_attribute(value));
  if (!result) {
    fail_at(value.place,
            fmt::format("attribute `{}` would be {}; its type must be {}", name, value.to_string(), to_string(*type)));
  }
  return *result;
}

}  // namespace graft::rules

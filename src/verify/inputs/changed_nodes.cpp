// Pairs nodes by the names of the tensors that they read and write.
#include "verify/inputs/changed_nodes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "onnx/operator_node.hpp"
#include "onnx/schema.hpp"
#include "onnx/text.hpp"

namespace graft::verify {
namespace {

using Names = std::vector<std::string_view>;

Names names_of(const std::vector<onnx::Value*>& values) {
  Names names;
  for (const onnx::Value* value : values) names.push_back(value == nullptr ? "" : std::string_view(value->name));
  return names;
}

/// Returns whether an attribute is not compared, because it has no effect on the result of a node, or only in
/// combination with other attributes.
bool is_left_out(const onnx::Node& node, const std::string& name) {
  // The weights determine kernel_shape, a seed only selects the random numbers, and saturate only affects f8.
  if (name == "kernel_shape" || name == "seed" || name == "saturate") return true;
  if (name == "momentum") return node.int_or("training_mode", 0) == 0;
  const bool is_padding = name == "pads" || name == "auto_pad" || name == "output_padding" || name == "output_shape";
  return is_padding && node.string_or("auto_pad", "NOTSET") != "NOTSET";
}

std::optional<AttributeValue> value_of(const onnx::Node& node, const std::string& name) {
  const onnx::NodeAttribute* attribute = node.attribute(name);
  return attribute != nullptr ? attribute->value() : onnx::default_attribute(node.op_type, name, node.graph->opset());
}

/// Returns an attribute that is an axis or a list of axes with all axes counted from the front, lists in ascending
/// order. Returns nothing if an axis is negative and the rank is unknown.
std::optional<AttributeValue> from_the_front(const onnx::Node& node, AttributeValue value) {
  const onnx::Value* counted = node.is("Unsqueeze") ? node.output() : node.input(0);
  const std::optional<std::int64_t> rank = counted == nullptr ? std::nullopt : counted->rank();
  const bool has_rank = rank.has_value();
  const std::int64_t known_rank = rank.value_or(0);
  bool is_known = true;
  const auto count = [&](std::int64_t& axis) {
    is_known = is_known && (axis >= 0 || has_rank);
    if (axis < 0) axis += known_rank;
  };
  if (auto* axis = std::get_if<std::int64_t>(&value)) count(*axis);
  if (auto* axes = std::get_if<std::vector<std::int64_t>>(&value)) {
    for (std::int64_t& axis : *axes) count(axis);
    std::sort(axes->begin(), axes->end());
  }
  return is_known ? std::optional(std::move(value)) : std::nullopt;
}

/// Returns whether both values of the attribute `name` (such as "to" of a Cast) are floating-point types. Models in
/// different precisions may differ in them.
bool are_real_types(const std::string& name, const AttributeValue& left, const AttributeValue& right) {
  constexpr std::array<std::string_view, 6> types{
      "to", "dtype", "output_dtype", "precision", "qk_matmul_output_type", "softmax_precision"};
  const auto is_real_type = [](const AttributeValue& value) {
    const auto* code = std::get_if<std::int64_t>(&value);
    return code != nullptr && is_floating_point(static_cast<onnx::ElementType>(*code));
  };
  return std::find(types.begin(), types.end(), name) != types.end() && is_real_type(left) && is_real_type(right);
}

/// Returns a clause such as "axis is 0 in the reference and 1 in the candidate" for the first attribute whose effect
/// differs, or nothing.
std::optional<std::string> attribute_difference(const onnx::Node& reference, const onnx::Node& candidate,
                                                const std::string& name) {
  if (is_left_out(reference, name) || is_left_out(candidate, name)) return std::nullopt;
  const auto left = value_of(reference, name);
  const auto right = value_of(candidate, name);
  if (!left || !right || *left == *right || are_real_types(name, *left, *right)) return std::nullopt;
  if (name == "axis" || name == "axes") {
    const auto first = from_the_front(reference, *left);
    const auto second = from_the_front(candidate, *right);
    if (!first || !second || *first == *second) return std::nullopt;
  }
  return fmt::format("{} is {} in the reference and {} in the candidate", name, to_text(onnx::NodeAttribute(*left)),
                     to_text(onnx::NodeAttribute(*right)));
}

std::vector<std::string> differences(const onnx::Node& reference, const onnx::Node& candidate) {
  if (reference.op_type != candidate.op_type) {
    return {fmt::format("the operator is {} in the reference and {} in the candidate", reference.op_type,
                        candidate.op_type)};
  }
  std::set<std::string> names;
  for (const onnx::Node* node : {&reference, &candidate}) {
    for (const auto& [name, attribute] : node->attributes) names.insert(name);
  }
  std::vector<std::string> found;
  for (const std::string& name : names) {
    if (auto text = attribute_difference(reference, candidate, name)) found.push_back(*std::move(text));
  }
  return found;
}

}  // namespace

std::vector<std::string> find_changed_nodes(const onnx::Model& reference, const onnx::Model& candidate) {
  if (reference.graph().opset() != candidate.graph().opset()) return {};
  std::map<std::pair<Names, Names>, const onnx::Node*> nodes;
  for (const onnx::Node* node : reference.graph().nodes()) {
    if (node->domain.empty()) nodes.emplace(std::pair(names_of(node->inputs), names_of(node->outputs)), node);
  }
  std::vector<std::string> found;
  for (const onnx::Node* node : candidate.graph().nodes()) {
    const auto other = nodes.find({names_of(node->inputs), names_of(node->outputs)});
    if (other == nodes.end() || !node->domain.empty() || has_trait(*node, onnx::trait::random)) continue;
    for (const std::string& text : differences(*other->second, *node)) {
      found.push_back(fmt::format("{}: {}", onnx::describe(*other->second), text));
    }
  }
  return found;
}

}  // namespace graft::verify

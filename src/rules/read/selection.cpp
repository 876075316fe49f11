// Reads the part of a rule that selects nodes: `op`, `name`, `scope`, `layer` and `layer_type`, and the conditions of
// `when`.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "rules/read/rule_parts.hpp"

namespace graft::rules {
namespace {

TensorCondition read_tensor_condition(const YamlReader& yaml, const YAML::Node& map) {
  TensorCondition condition;
  if (const auto node = find_key(map, "dtype")) {
    condition.dtype = onnx::parse_element_type(yaml.text_of(*node, "`dtype`"));
    if (!condition.dtype) {
      yaml.fail(*node, fmt::format("the element type '{}' is unknown; write it as in f32, f16, bf16, i32, i64 or bool",
                                   node->Scalar()));
    }
  }
  if (const auto node = find_key(map, "rank")) condition.rank = yaml.index_of(*node);
  if (const auto node = find_key(map, "shape")) {
    if (!node->IsSequence()) yaml.fail(*node, "`shape` must be a list such as [any, 3, H, W]");
    condition.shape.emplace();
    for (const YAML::Node& item : *node) condition.shape->push_back(yaml.text_of(item, "a dimension"));
  }
  return condition;
}

}  // namespace

RuleAttributes read_attributes(const YamlReader& yaml, const YAML::Node& map) {
  if (!map.IsMap())
    yaml.fail(map, "`attributes` must be a mapping of attribute names to values, as in {epsilon: 1.0e-3}");
  RuleAttributes result;
  for (const auto& entry : map) {
    std::string name = yaml.text_of(entry.first, "the name of an attribute");
    if (find_attribute(result, name) != nullptr) {
      yaml.fail(entry.first, fmt::format("attribute `{}` is set twice; remove one of the two", name));
    }
    RuleValue value = yaml.value_of(entry.second);
    value.place = yaml.place_of(entry.first);
    result.emplace_back(std::move(name), std::move(value));
  }
  return result;
}

void read_when(const YamlReader& yaml, const YAML::Node& node, Selector& select) {
  yaml.check_keys(node, {"attributes", "dtype", "rank", "shape", "inputs"}, "`when`");
  if (const auto attributes = find_key(node, "attributes")) select.attributes = read_attributes(yaml, *attributes);
  TensorCondition first = read_tensor_condition(yaml, node);
  if (first.dtype || first.rank || first.shape) select.inputs.emplace(0, std::move(first));
  const auto inputs = find_key(node, "inputs");
  if (!inputs) return;
  if (!inputs->IsMap())
    yaml.fail(*inputs, "`inputs` must be a mapping of the index of an input to its conditions, as in {1: {rank: 4}}");
  for (const auto& entry : *inputs) {
    yaml.check_keys(entry.second, {"dtype", "rank", "shape"}, "a condition on an input");
    if (!select.inputs.emplace(yaml.index_of(entry.first), read_tensor_condition(yaml, entry.second)).second) {
      yaml.fail(entry.first,
                "this input has conditions in two places; remove one of them (`dtype`, `rank` and `shape` directly "
                "below `when` apply to input 0)");
    }
  }
}

void read_selector(const YamlReader& yaml, const YAML::Node& node, Selector& select) {
  yaml.check_keys(node, {"op", "name", "scope", "layer", "layer_type"}, "the selection of a rule");
  if (node.size() == 0)
    yaml.fail(
        node,
        "the selection is empty; select nodes with `op`, `name`, `scope`, `layer` or `layer_type`, as in {op: Conv}");
  if (const auto value = find_key(node, "op")) select.op = yaml.pattern_of(*value, "op");
  if (const auto value = find_key(node, "name")) select.name = yaml.pattern_of(*value, "name");
  if (const auto value = find_key(node, "layer")) select.layer = yaml.pattern_of(*value, "layer");
  if (const auto value = find_key(node, "layer_type")) select.layer_type = yaml.pattern_of(*value, "layer_type");
  if (const auto value = find_key(node, "scope")) {
    std::string scope = yaml.text_of(*value, "`scope`");
    if (scope.ends_with("/*")) scope.resize(scope.size() - 2);
    while (scope.ends_with('/')) scope.pop_back();
    while (scope.starts_with('/')) scope.erase(0, 1);
    select.scope = NamePattern(scope, yaml.place_of(*value));
    if (select.op || select.name || select.layer || select.layer_type) {
      yaml.fail(*value,
                "`scope` cannot be combined with `op`, `name`, `layer` or `layer_type`: it selects all nodes below a "
                "name as one group");
    }
  }
}

}  // namespace graft::rules

// The parts that several kinds of rules have in common, each read from its YAML: the selection of nodes with its
// conditions (`op`, `scope`, `when`, ...), attributes, and the new operator (`with`, `plugin`, `int8`).
#pragma once

#include <yaml-cpp/yaml.h>

#include <optional>

#include "rules/read/yaml.hpp"
#include "rules/rule.hpp"

namespace graft::rules {

// All functions throw Error with the line and column of what they cannot read.

/// Reads the names that select nodes: {op: Conv, name: "conv*"}.
void read_selector(const YamlReader& yaml, const YAML::Node& node, Selector& select);
/// Reads the further conditions on a selected node, below `when`.
void read_when(const YamlReader& yaml, const YAML::Node& node, Selector& select);
[[nodiscard]] RuleAttributes read_attributes(const YamlReader& yaml, const YAML::Node& map);

/// Reads the operator that a rule inserts, from `with` or `plugin`; it has no name if the rule has neither.
[[nodiscard]] RuleOperator read_operator(const YamlReader& yaml, const YAML::Node& rule);
/// Reads `int8`: the scales under the names that they have in the operator.
[[nodiscard]] Rule::Int8 read_int8(const YamlReader& yaml, const YAML::Node& map, const RuleOperator& with);

}  // namespace graft::rules

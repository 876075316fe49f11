// The parts that several kinds of rules have in common, each read from its YAML: the selection of nodes with its
// conditions (`op`, `scope`, `when`, ...), attributes, and the new operator (`with`, `plugin`, `int8`).
#pragma once

#include <yaml-cpp/yaml.h>

#include <optional>

#include "rules/read/yaml.hpp"
#include "rules/rule.hpp"

namespace graft::rules {

// All functions throw Error with the line and column of what they cannot read.

/// Reads a map such as {op: Conv, name: "conv*"} into the operator, name, scope and layer of `select`.
void read_selector(const YamlReader& yaml, const YAML::Node& node, Selector& select);
/// Reads the map below `when`, the conditions on attributes and inputs of a node, into `select`.
void read_when(const YamlReader& yaml, const YAML::Node& node, Selector& select);
[[nodiscard]] RuleAttributes read_attributes(const YamlReader& yaml, const YAML::Node& map);

/// Reads the operator that a rule inserts from its key `with` or `plugin`. Its op_type is empty if the rule has
/// neither.
[[nodiscard]] RuleOperator read_operator(const YamlReader& yaml, const YAML::Node& rule);
/// Reads the map below `int8`, whose keys are the names of the scale attributes of the operator `with`.
[[nodiscard]] Rule::Int8 read_int8(const YamlReader& yaml, const YAML::Node& map, const RuleOperator& with);

}  // namespace graft::rules

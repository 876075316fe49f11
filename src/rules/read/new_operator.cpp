// Reads the part of a rule that names the new operator: `with`, an operator of Graft or ONNX, `plugin`, a plugin of
// another library, and `int8`, the scales of an operator that computes in int8.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "graft/operator/registry.hpp"
#include "graft/setting.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/schema.hpp"
#include "rules/read/rule_parts.hpp"
#include "rules/text.hpp"

namespace graft::rules {
namespace {

RuleOperator read_plugin(const YamlReader& yaml, const YAML::Node& map) {
  yaml.check_keys(map, {"name", "version", "namespace"}, "`plugin`");
  const auto name = find_key(map, "name");
  if (!name) {
    yaml.fail(map,
              "`name` is missing below `plugin`; set it to the name of the plugin's creator, which `graft plugins "
              "LIB.so` lists, as in plugin: {name: TheirNorm}");
  }
  RuleOperator result;
  result.is_plugin = true;
  result.domain = "trt.plugins";
  result.op_type = yaml.text_of(*name, "`name`");
  const auto version = find_key(map, "version");
  result.plugin_version = version ? yaml.text_of(*version, "`version`") : "1";
  const auto space = find_key(map, "namespace");
  if (space && !space->IsScalar()) yaml.fail(*space, "`namespace` must be a string");
  result.plugin_namespace = space ? space->Scalar() : "";
  return result;
}

/// Returns the operators of the loaded libraries, one library after the other, and then Graft's, for messages:
/// "libmy_ops.so has Snake; Graft's operators are L2Normalize, ...".
std::string lists_of_operators() {
  std::string text;
  for (const OperatorLibrary& library : operator_libraries()) {
    std::vector<std::string> names;
    for (const OperatorType* type : library.operators) names.emplace_back(type->name);
    text += fmt::format("{} has {}; ", std::filesystem::path(library.file).filename().string(), joined(names));
  }
  std::vector<std::string> own;
  for (const OperatorType* type : operators()) {
    if (library_of(*type) == nullptr) own.emplace_back(type->name);
  }
  return text + "Graft's operators are " + joined(own);
}

[[noreturn]] void fail_unknown_operator(const Place& place, const RuleOperator& with) {
  std::vector<std::string> known;
  if (with.domain.empty()) {
    for (const onnx::OperatorSchema* schema : onnx::all_schemas()) {
      if (schema->removed == 0) known.emplace_back(schema->name);
    }
  }
  for (const OperatorType* type : operators()) known.emplace_back(type->name);
  fail_at(place, fmt::format("there is no operator {}{} {}; write an operator of ONNX by its name, and an operator of "
                             "another domain as domain::Operator{}",
                             with.op_type, did_you_mean(with.op_type, known, "."), lists_of_operators(),
                             operator_libraries().empty() ? fmt::format("; load a library of operators with {}",
                                                                        setting_name(Setting::operator_libraries))
                                                          : ""));
}

RuleOperator read_with(const YamlReader& yaml, const YAML::Node& node) {
  const std::string text = yaml.text_of(node, "`with`");
  RuleOperator result;
  const std::size_t colons = text.find("::");
  result.domain = colons == std::string::npos ? "" : text.substr(0, colons);
  result.op_type = colons == std::string::npos ? text : text.substr(colons + 2);
  if (result.domain == "ai.onnx") result.domain.clear();
  if (result.domain.empty() && onnx::is_standard_operator("", result.op_type)) return result;
  if (!result.domain.empty() && result.domain != onnx_domain) return result;
  result.graft = find_operator(result.op_type);
  if (result.graft == nullptr) fail_unknown_operator(yaml.place_of(node), result);
  result.domain = onnx_domain;
  return result;
}

double read_scale(const YamlReader& yaml, const YAML::Node& map, std::string_view key) {
  const auto node = find_key(map, key);
  if (!node)
    yaml.fail(
        map,
        fmt::format("`{0}` is missing below `int8`; set the scale, the real value of one step of int8, as in {0}: 0.05",
                    key));
  const auto number = node->IsScalar() ? to_number(node->Scalar()) : std::nullopt;
  if (!number || !(*number > 0) || std::isinf(*number)) {
    yaml.fail(*node, fmt::format("`{}` must be a finite number above 0", key));
  }
  return *number;
}

}  // namespace

RuleOperator read_operator(const YamlReader& yaml, const YAML::Node& rule) {
  const auto with = find_key(rule, "with");
  const auto plugin = find_key(rule, "plugin");
  if (with && plugin) yaml.fail(*plugin, "a rule cannot have both `with` and `plugin`; remove one of them");
  if (with) return read_with(yaml, *with);
  return plugin ? read_plugin(yaml, *plugin) : RuleOperator{};
}

Rule::Int8 read_int8(const YamlReader& yaml, const YAML::Node& map, const RuleOperator& with) {
  if (!with.computes_in_int8()) return {};  // check_rule refuses this once the whole rule is read
  yaml.check_keys(map, {with.input_scale(), with.output_scale()}, "`int8`");
  return {.input_scale = read_scale(yaml, map, with.input_scale()),
          .output_scale = read_scale(yaml, map, with.output_scale())};
}

}  // namespace graft::rules

// Checks rules that were read: the attributes against the schemas of ONNX and the operators of Graft, the names of a
// pattern that a rule `match` uses, and options such as `int8`, `prove` and `reason` that depend on each other.
#include "rules/read/check_rule.hpp"

#include <fmt/format.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/suggest.hpp"
#include "graft/operator/registry.hpp"
#include "onnx/onnx_io.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/schema.hpp"
#include "rules/text.hpp"

namespace graft::rules {
namespace {

using Kind = Rule::Kind;
using Names = std::set<std::string, std::less<>>;

// ---- Attributes

/// Returns the type of the attribute `name` of an operator, or nothing if the operator belongs neither to ONNX nor to
/// Graft. Throws Error at `place` if the operator does not have the attribute.
std::optional<AttributeType> checked_type(const RuleOperator& with, const std::string& name, const Place& place) {
  if (with.graft != nullptr) {
    if (const AttributeInfo* info = with.graft->find_attribute(name)) return info->type;
    std::vector<std::string> known;
    for (const AttributeInfo& attribute : with.graft->attributes) known.emplace_back(attribute.name);
    fail_at(place, no_attribute(with.to_string(), name, known));
  }
  const onnx::OperatorSchema* schema = with.schema();
  if (schema == nullptr) return std::nullopt;
  if (!schema->has_attribute(name)) fail_at(place, no_attribute(with.to_string(), name, schema->attribute_names()));
  const auto type = schema->attribute_type(name);
  if (!type) {
    fail_at(place, fmt::format("a rule cannot set the attribute `{}` of {}: rules set only numbers, lists of numbers "
                               "and strings, and this attribute has another type",
                               name, with.to_string()));
  }
  return type;
}

void check_attributes(const RuleOperator& with, const RuleAttributes& given) {
  for (const auto& [name, value] : given) {
    const auto type = checked_type(with, name, value.place);
    if (!type || value.is_expression()) continue;
    const auto attribute = to_attribute(value, *type);
    if (!attribute) {
      fail_at(value.place, fmt::format("attribute `{}` of {} is set to {}; its type must be {}", name, with.to_string(),
                                       value.to_string(), to_string(*type)));
    }
    if (with.graft == nullptr) continue;
    if (const Status status = check_attribute(*with.graft->find_attribute(name), *attribute); !status.ok()) {
      fail_at(value.place, fmt::format("{}: {}", with.to_string(), status.message()));
    }
  }
}

/// Throws Error if a rule of the kind `set` lists no attributes, or if it selects exactly one ONNX operator that does
/// not have one of them.
void check_set_attributes(const Rule& rule) {
  if (rule.attributes.empty())
    fail_at(rule.place,
            "`attributes` is missing; list the attributes that the rule sets, as in attributes: {epsilon: 1.0e-3}");
  const auto& op = rule.select.op;
  if (!op || !op->is_exact() || !onnx::is_standard_operator("", op->text())) return;
  RuleOperator selected;
  selected.op_type = op->text();
  check_attributes(selected, rule.attributes);
}

// ---- The names of a pattern

void check_input_count(const Rule& rule, const Names& names) {
  const auto counts = rule.with.port_counts();
  const std::size_t given = rule.inputs ? rule.inputs->size() : 1;
  if (!counts || (given >= counts->fewest_inputs && given <= counts->most_inputs)) return;
  const std::size_t fewest = counts->fewest_inputs;
  const std::size_t most = counts->most_inputs;
  std::vector<std::string> ports;
  for (std::size_t i = 0; rule.with.graft != nullptr && i < rule.with.graft->input_count(); ++i) {
    ports.emplace_back(rule.with.graft->ports[i].name);
  }
  const std::size_t limit = given > most ? most : fewest;
  const std::string allowed = fewest == most ? std::to_string(most)
                              : given > most ? fmt::format("at most {}", most)
                                             : fmt::format("at least {}", fewest);
  fail_at(rule.inputs ? rule.inputs_place : rule.place,
          fmt::format("{} has {} input{}{}, but {}. List in `inputs` the names of the pattern that the operator reads, "
                      "in the order of its inputs; the names of the pattern are {}",
                      rule.with.to_string(), allowed, limit == 1 ? "" : "s",
                      ports.empty() ? "" : fmt::format(" ({})", joined(ports)),
                      rule.inputs ? fmt::format("`inputs` lists {}", given) : "without `inputs` only x is read",
                      joined({names.begin(), names.end()})));
}

/// Throws Error if an attribute that is not a string is set to a plain name such as `beta: beta`, although the pattern
/// has a constant of that name: the author meant `beta: "@beta"`.
void check_is_no_constant(const Rule& rule, const std::string& name, const RuleValue& value) {
  const auto* text = std::get_if<std::string>(&value.data);
  if (text == nullptr || !rule.pattern->constant_names().contains(*text)) return;
  const AttributeInfo* info = rule.with.graft == nullptr ? nullptr : rule.with.graft->find_attribute(name);
  if (info != nullptr && info->type == AttributeType::text) return;
  const onnx::OperatorSchema* schema = rule.with.domain.empty() ? onnx::find_schema(rule.with.op_type) : nullptr;
  if (schema != nullptr && schema->attribute_type(name) == AttributeType::text) return;
  fail_at(
      value.place,
      fmt::format(
          "attribute `{}` is set to the string \"{}\"; to use the constant of that name in the pattern, write \"@{}\"",
          name, *text, *text));
}

/// Throws Error if a rule does not use the pattern's constant `name` although the new operator seems to need it: the
/// operator has an attribute of that name, or the constant is an attribute that occurs only once in the pattern. Other
/// unused constants are allowed; they only require that an input is constant or that an attribute is present.
void check_may_be_unread(const Rule& rule, const std::string& name) {
  const onnx::Pattern::Capture& constant = rule.pattern->constant_names().at(name);
  const AttributeInfo* own = rule.with.graft == nullptr ? nullptr : rule.with.graft->find_attribute(name);
  if (own != nullptr && find_attribute(rule.attributes, name) == nullptr) {
    fail_at(rule.place, fmt::format("the pattern has @{0}, but the rule does not use it: the attribute `{0}` of {1} "
                                    "would have its default; set the attribute under `attributes`, as in {{{0}: "
                                    "\"@{0}\"}}, or rename the constant if you want the default",
                                    name, rule.with.to_string()));
  }
  // A Graft operator has attributes of its own for what the network's nodes compute.
  if (own == nullptr && rule.with.graft != nullptr && rule.prove && constant.of_attribute && constant.places == 1) {
    fail_at(rule.place,
            fmt::format(
                "the pattern has @{0}, but the rule does not use it; assign the constant to an attribute of {1}, as "
                "in {{attribute: \"@{0}\"}}, or remove the constant from the braces of the pattern",
                name, rule.with.to_string()));
  }
}

/// Throws Error if a rule of the kind `match` uses a name that its pattern does not define. This does not depend on a
/// network.
void check_names(const Rule& rule) {
  const auto& values = rule.pattern->value_names();
  const auto& constants = rule.pattern->constant_names();
  Names unread;
  for (const auto& [name, constant] : constants) unread.insert(name);
  const std::vector<std::string> constant_names(unread.begin(), unread.end());
  if (!rule.inputs && !values.contains("x")) {
    fail_at(rule.place, fmt::format("`inputs` is missing; list the names of the pattern that the operator reads, in "
                                    "the order of its inputs; the names of the pattern are {}",
                                    joined({values.begin(), values.end()})));
  }
  check_input_count(rule, values);
  for (const RuleValue& input : rule.inputs.value_or(std::vector<RuleValue>{})) {
    const auto* name = std::get_if<std::string>(&input.data);
    if (name == nullptr) {
      fail_at(input.place,
              "each entry of `inputs` must be a name of the pattern, or _ for an optional input that is left out");
    }
    const std::string plain = name->starts_with('@') ? name->substr(1) : *name;
    unread.erase(plain);
    if (plain == "_" || values.contains(plain) || constants.contains(plain)) continue;
    fail_at(input.place,
            fmt::format("the pattern has no name {}; its names are {}", *name, joined({values.begin(), values.end()})));
  }
  for (const auto& attribute : rule.attributes) {
    const std::string& name = attribute.first;
    const RuleValue& value = attribute.second;
    check_is_no_constant(rule, name, value);
    static_cast<void>(evaluate(value, [&](const std::string& constant) -> std::optional<RuleValue::Data> {
      unread.erase(constant);
      if (constants.contains(constant)) return 1.;
      fail_at(value.place, fmt::format("attribute `{}` is computed from @{}, which the pattern does not have; the "
                                       "constants of the pattern are {}",
                                       name, constant, joined(constant_names)));
    }));
  }
  for (const std::string& name : unread) check_may_be_unread(rule, name);
}

// ---- Options that depend on each other

void check_int8(const Rule& rule) {
  if (rule.with.is_foreign())
    fail_at(rule.place, "`int8` is supported only for operators of Graft, which `graft ops` lists");
  if (!rule.with.computes_in_int8()) {
    fail_at(rule.place, fmt::format("{} cannot compute in int8; remove `int8` from the rule", rule.with.to_string()));
  }
  for (const auto& [name, value] : rule.attributes) {
    if (name.ends_with("_scale"))
      fail_at(value.place, fmt::format("`{}` must be set under `int8`, not under `attributes`", name));
  }
  if (!rule.changes_result) {
    fail_at(rule.place, "a rule with `int8` changes the result; add changes_result: true and a `reason` to the rule");
  }
}

}  // namespace

void check_rule(const Rule& rule) {
  const bool inserts_operator = rule.kind == Kind::replace || rule.kind == Kind::match;
  if (inserts_operator && rule.with.op_type.empty()) {
    fail_at(rule.place,
            "`with` is missing; set the new operator, as in with: L2Normalize, or set `plugin` to a plugin of another "
            "library, as in plugin: {name: TheirNorm}");
  }
  if (rule.kind == Kind::match) check_names(rule);
  if (rule.kind == Kind::set) {
    check_set_attributes(rule);
  } else {
    check_attributes(rule.with, rule.attributes);
  }
  if (inserts_operator && rule.with.is_plugin && rule.prove) {
    fail_at(rule.place, fmt::format("{} cannot run on the CPU, so this rule cannot be proven; to apply the rule "
                                    "without a proof, add prove: false and a `reason` to the rule",
                                    rule.with.to_string()));
  }
  if (rule.int8) check_int8(rule);
  if (rule.changes_result && rule.reason.empty()) {
    fail_at(rule.place,
            "changes_result: true requires a `reason`, which the report contains; add it, as in reason: int8 for the "
            "first layer");
  }
  if (!rule.prove && rule.reason.empty())
    fail_at(
        rule.place,
        "prove: false requires a `reason`, which the report contains; add it, as in reason: compared on the device");
  if (rule.select.scope && (!rule.select.attributes.empty() || !rule.select.inputs.empty())) {
    fail_at(rule.place,
            "`when` applies to single nodes and cannot be combined with `scope`, which selects a group; remove `when`, "
            "or select single nodes with `op` or `name`");
  }
}

}  // namespace graft::rules

// Reads files of rules: YAML lists in which each rule begins with its action. All errors that can be found without the
// network are reported here, with file, line and column.
#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graft/error.hpp"
#include "onnx/mapped_file.hpp"
#include "rules/read/check_rule.hpp"
#include "rules/read/rule_parts.hpp"
#include "rules/rule.hpp"
#include "rules/text.hpp"

namespace graft::rules {
namespace {

using Kind = Rule::Kind;
using Stage = Rule::Stage;

constexpr std::size_t most_rule_bytes = std::size_t{4} << 20U;

/// The properties of a kind of rule: its key in YAML, and how rules of this kind are read. The kinds are listed in the
/// order of Rule::Kind.
struct KindInfo {
  std::string_view key;
  Kind kind;
  Stage stage;  ///< The default stage, if the rule does not set `stage`.
  /// The keys that rules of this kind allow, in addition to `optional` and `reason`, which all rules allow.
  std::vector<std::string> options;
};

const std::vector<KindInfo>& kinds() {
  static const std::vector<KindInfo> all{
      {"replace",
       Kind::replace,
       Stage::before,
       {"with", "plugin", "inputs", "outputs", "attributes", "int8", "when", "stage", "changes_result", "prove"}},
      {"match",
       Kind::match,
       Stage::before,
       {"with", "plugin", "inputs", "outputs", "attributes", "stage", "changes_result", "prove"}},
      {"remove", Kind::remove, Stage::before, {"input", "when", "stage", "changes_result", "prove"}},
      {"set", Kind::set, Stage::before, {"attributes", "when", "stage", "changes_result", "prove"}},
      {"constant", Kind::constant, Stage::before, {"stage", "changes_result", "prove"}},
      {"rename", Kind::rename, Stage::interface, {}},
      {"rename_nodes", Kind::rename_nodes, Stage::interface, {}},
      {"shape", Kind::shape, Stage::interface, {}},
      {"dtype", Kind::dtype, Stage::interface, {}},
      {"fix", Kind::fix, Stage::interface, {}},
      {"dynamic_batch", Kind::dynamic_batch, Stage::interface, {}},
      {"add_outputs", Kind::add_outputs, Stage::interface, {}},
      {"drop_outputs", Kind::drop_outputs, Stage::interface, {}},
      {"cut", Kind::cut, Stage::interface, {}},
  };
  return all;
}

/// Returns the kind of a rule from the keys of its YAML map. Throws Error if the map has no key of a kind, or more than
/// one.
const KindInfo& find_kind(const YamlReader& yaml, const YAML::Node& node) {
  std::vector<std::string> names;
  for (const KindInfo& info : kinds()) names.emplace_back(info.key);
  if (!node.IsMap())
    yaml.fail(node,
              fmt::format(
                  "a rule must be a mapping that begins with its kind, as in remove: {{op: Dropout}}; the kinds are {}",
                  joined(names)));
  const KindInfo* kind = nullptr;
  for (const KindInfo& info : kinds()) {
    if (!find_key(node, info.key)) continue;
    if (kind != nullptr) {
      yaml.fail(node, fmt::format("a rule has one kind, but this rule has both `{}` and `{}`; write two rules",
                                  kind->key, info.key));
    }
    kind = &info;
  }
  if (kind == nullptr) {
    const std::string first = node.size() == 0 ? "" : yaml.text_of(node.begin()->first, "a key");
    yaml.fail(node, fmt::format("this rule has no kind{} Begin the rule with one of {}",
                                did_you_mean(first, names, "."), joined(names)));
  }
  return *kind;
}

// ---- The content of a rule: the value of its first key

RuleValue read_new_value(const YamlReader& yaml, Kind kind, const YAML::Node& node) {
  RuleValue value{yaml.place_of(node), {}};
  switch (kind) {
    case Kind::shape: {
      if (!node.IsSequence()) yaml.fail(node, "a shape must be a list of sizes and names, as in [N, 3, 224, 224]");
      std::vector<std::string> dims;
      for (const YAML::Node& item : node) {
        dims.push_back(yaml.text_of(item, "a dimension"));
        static_cast<void>(parse_dim(dims.back(), yaml.place_of(item)));
      }
      value.data = std::move(dims);
      return value;
    }
    case Kind::dtype:
      value.data = yaml.text_of(node, "a type");
      if (!onnx::parse_element_type(node.Scalar())) {
        yaml.fail(node,
                  fmt::format("the element type '{}' is unknown; write it as in f32, f16, bf16, u8, i32, i64 or bool",
                              node.Scalar()));
      }
      return value;
    case Kind::fix: {
      const auto size = node.IsScalar() ? to_integer(node.Scalar()) : std::nullopt;
      if (!size || *size < 1) yaml.fail(node, "the size of a dimension must be an integer of at least 1");
      value.data = *size;
      return value;
    }
    case Kind::constant: return yaml.value_of(node);
    default: value.data = yaml.text_of(node, "a new name"); return value;
  }
}

void read_table(const YamlReader& yaml, const YAML::Node& node, const KindInfo& info, Rule& rule) {
  if (!node.IsMap() || node.size() == 0) {
    yaml.fail(node, fmt::format("`{}` must be a mapping of names to new values", info.key));
  }
  const bool needs_exact_names = rule.kind == Kind::fix || rule.kind == Kind::constant;
  for (const auto& entry : node) {
    Rule::Entry item{yaml.pattern_of(entry.first, info.key), read_new_value(yaml, rule.kind, entry.second)};
    if (needs_exact_names && !item.name.is_exact()) {
      yaml.fail(entry.first,
                "the names in `fix` and `constant` must be exact, without the wildcards * and ? and without re:");
    }
    rule.entries.push_back(std::move(item));
  }
}

void read_cut(const YamlReader& yaml, const YAML::Node& node, Rule& rule) {
  yaml.check_keys(node, {"from", "to"}, "`cut`");
  if (node.size() == 0) {
    yaml.fail(node,
              "`cut` is empty; set `from`, the tensors at which the part begins, or `to`, the tensors at which the "
              "part ends, or both");
  }
  if (const auto from = find_key(node, "from")) rule.from = yaml.patterns_of(*from, "from");
  if (const auto to = find_key(node, "to")) rule.to = yaml.patterns_of(*to, "to");
}

std::shared_ptr<const onnx::Pattern> read_pattern(const YamlReader& yaml, const YAML::Node& node, const Place& rule) {
  try {
    return std::make_shared<const onnx::Pattern>(yaml.text_of(node, "a pattern"), rule.to_string(), "the pattern");
  } catch (const Error& error) {
    yaml.fail(node,
              fmt::format("{}\nA pattern has lines such as `y = Relu(Add(x, @bias))`; the last line is the last node",
                          error.what()));
  }
}

void read_content(const YamlReader& yaml, const YAML::Node& node, const KindInfo& info, Rule& rule) {
  switch (rule.kind) {
    case Kind::replace:
    case Kind::remove:
    case Kind::set: read_selector(yaml, node, rule.select); return;
    case Kind::match: rule.pattern = read_pattern(yaml, node, rule.place); return;
    case Kind::cut: read_cut(yaml, node, rule); return;
    case Kind::dynamic_batch:
      rule.symbol = yaml.text_of(node, "`dynamic_batch`");
      if (parse_dim(rule.symbol, yaml.place_of(node)).is_constant()) {
        yaml.fail(node, "`dynamic_batch` must be the new name of the dimension, as in dynamic_batch: N");
      }
      return;
    case Kind::add_outputs:
    case Kind::drop_outputs: rule.names = yaml.patterns_of(node, info.key); return;
    case Kind::rename:
    case Kind::rename_nodes:
    case Kind::shape:
    case Kind::dtype:
    case Kind::fix:
    case Kind::constant: read_table(yaml, node, info, rule); return;
  }
}

// ---- The description of a rule in messages and reports

std::string to_string(const std::vector<NamePattern>& names) {
  std::string text;
  for (const NamePattern& name : names) text += (text.empty() ? "" : ", ") + name.text();
  return text;
}

std::string to_string(const Selector& select) {
  std::string text;
  const auto add = [&](const char* what, const std::optional<NamePattern>& name) {
    if (name) text += fmt::format("{}{} `{}`", text.empty() ? "" : ", ", what, name->text());
  };
  add("operator", select.op);
  add("name", select.name);
  add("scope", select.scope);
  add("layer", select.layer);
  add("layer type", select.layer_type);
  return text;
}

std::string describe(const Rule& rule, std::string_view key) {
  switch (rule.kind) {
    case Kind::replace: return fmt::format("replace {} with {}", to_string(rule.select), rule.with.to_string());
    case Kind::match: return fmt::format("replace a pattern with {}", rule.with.to_string());
    case Kind::remove: return fmt::format("remove {}", to_string(rule.select));
    case Kind::set: return fmt::format("set attributes of {}", to_string(rule.select));
    case Kind::dynamic_batch: return fmt::format("make the batch size dynamic, with the name {}", rule.symbol);
    case Kind::add_outputs: return fmt::format("add outputs {}", to_string(rule.names));
    case Kind::drop_outputs: return fmt::format("drop outputs {}", to_string(rule.names));
    case Kind::cut:
      return fmt::format("keep the part from {} to {}", rule.from.empty() ? "the inputs" : to_string(rule.from),
                         rule.to.empty() ? "the outputs" : to_string(rule.to));
    default: break;
  }
  std::vector<NamePattern> names;
  for (const Rule::Entry& entry : rule.entries) names.push_back(entry.name);
  return fmt::format("{} {}", key, to_string(names));
}

// ---- Whole rules

void read_options(const YamlReader& yaml, const YAML::Node& node, Rule& rule) {
  if (const auto value = find_key(node, "optional")) rule.optional = yaml.flag_of(*value, "optional");
  if (const auto value = find_key(node, "changes_result")) {
    rule.changes_result = yaml.flag_of(*value, "changes_result");
  }
  if (const auto value = find_key(node, "prove")) rule.prove = yaml.flag_of(*value, "prove");
  if (const auto value = find_key(node, "reason")) rule.reason = yaml.text_of(*value, "`reason`");
  if (const auto value = find_key(node, "stage")) {
    const std::string stage = yaml.text_of(*value, "`stage`");
    if (stage != "before" && stage != "after") {
      yaml.fail(
          *value,
          fmt::format("`stage` is {}; it must be before or after, which means before or after the fusions", stage));
    }
    rule.stage = stage == "after" ? Stage::after : Stage::before;
  }
  if (const auto value = find_key(node, "attributes")) rule.attributes = read_attributes(yaml, *value);
  if (const auto value = find_key(node, "when")) read_when(yaml, *value, rule.select);
  if (const auto value = find_key(node, "outputs")) {
    for (const NamePattern& name : yaml.patterns_of(*value, "outputs")) rule.outputs.push_back(name.text());
  }
  if (const auto value = find_key(node, "inputs")) {
    if (!value->IsSequence())
      yaml.fail(
          *value,
          "`inputs` must be a list of names of tensors or indices of inputs, as in inputs: [x] or inputs: [0, 2]");
    rule.inputs_place = yaml.place_of(*value);
    rule.inputs.emplace();
    for (const YAML::Node& item : *value) rule.inputs->push_back(yaml.value_of(item));
  }
  if (const auto value = find_key(node, "input")) rule.input = yaml.index_of(*value);
  rule.with = read_operator(yaml, node);
  if (const auto value = find_key(node, "int8")) rule.int8 = read_int8(yaml, *value, rule.with);
}

Rule read_rule(const YamlReader& yaml, const YAML::Node& node) {
  const KindInfo& info = find_kind(yaml, node);
  std::vector<std::string> keys{std::string(info.key), "optional", "reason"};
  keys.insert(keys.end(), info.options.begin(), info.options.end());
  yaml.check_keys(node, keys, fmt::format("a rule `{}`", info.key));
  Rule rule;
  rule.place = yaml.place_of(node);
  rule.kind = info.kind;
  rule.stage = info.stage;
  read_options(yaml, node, rule);
  read_content(yaml, *find_key(node, info.key), info, rule);
  rule.text = describe(rule, info.key);
  check_rule(rule);
  return rule;
}

}  // namespace

std::vector<Rule> parse_rules(const std::string& text, const std::string& name) {
  if (text.size() > most_rule_bytes) {
    throw Error(fmt::format("{}: the file of rules has {} bytes; at most {} bytes are supported", name, text.size(),
                            most_rule_bytes));
  }
  YAML::Node document;
  try {
    document = YAML::Load(text);
  } catch (const YAML::Exception& error) {
    fail_at(
        {name, error.mark.line + 1, error.mark.column + 1},
        fmt::format("the file is not valid YAML: {}\nA name that begins with @, *, & or ! needs quotes.", error.msg));
  }
  const YamlReader yaml(name);
  if (!document.IsSequence()) {
    yaml.fail(
        document,
        "rules must be a list; begin each rule with a dash, as in\n- remove: {op: Dropout}\n- rename: {old: new}");
  }
  std::vector<Rule> rules;
  for (const YAML::Node& node : document) rules.push_back(read_rule(yaml, node));
  return rules;
}

std::vector<Rule> read_rules(const std::filesystem::path& path) {
  return parse_rules(std::string(onnx::MappedFile::open(path, most_rule_bytes)->view()), path.string());
}

}  // namespace graft::rules

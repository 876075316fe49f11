// Reads rules from YAML. All errors that can be found without the model are reported here, with line and column.
#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "graft/error.hpp"
#include "graft/operator/registry.hpp"
#include "graft/setting.hpp"
#include "onnx/mapped_file.hpp"
#include "onnx/onnx_io.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/schema.hpp"
#include "rules/attributes.hpp"
#include "rules/rule.hpp"
#include "rules/text.hpp"
#include "rules/yaml.hpp"

namespace graft::rules {
namespace {

using Kind = Rule::Kind;

constexpr std::size_t most_rule_bytes = std::size_t{4} << 20U;

struct KindInfo {
  std::string_view key;
  Kind kind;
  /// The keys that a kind of rule allows, in addition to `optional` and `reason`, which every kind allows.
  std::vector<std::string> options;
};

const std::vector<KindInfo>& kinds() {
  static const std::vector<KindInfo> all{
      {"replace",
       Kind::replace,
       {"with", "plugin", "inputs", "outputs", "attributes", "int8", "when", "stage", "changes_result", "prove"}},
      {"match", Kind::match, {"with", "plugin", "inputs", "outputs", "attributes", "stage", "changes_result", "prove"}},
      {"remove", Kind::remove, {"input", "when", "stage", "changes_result", "prove"}},
      {"set", Kind::set, {"attributes", "when", "stage", "changes_result", "prove"}},
      {"constant", Kind::constant, {"stage", "changes_result", "prove"}},
      {"rename", Kind::rename, {}},
      {"rename_nodes", Kind::rename_nodes, {}},
      {"shape", Kind::shape, {}},
      {"dtype", Kind::dtype, {}},
      {"fix", Kind::fix, {}},
      {"dynamic_batch", Kind::dynamic_batch, {}},
      {"add_outputs", Kind::add_outputs, {}},
      {"drop_outputs", Kind::drop_outputs, {}},
      {"cut", Kind::cut, {}},
  };
  return all;
}

/// Reads whole rules. YamlReader reads their single values.
class Reader : private YamlReader {
 public:
  using YamlReader::YamlReader;

  std::vector<Rule> read(const std::string& text) {
    if (text.size() > most_rule_bytes) {
      throw Error(
          fmt::format("{}: the rules have {} bytes; allowed are at most {}", name(), text.size(), most_rule_bytes));
    }
    YAML::Node document;
    try {
      document = YAML::Load(text);
    } catch (const YAML::Exception& error) {
      const Place place{name(), error.mark.line + 1, error.mark.column + 1};
      throw Error(fmt::format("{}: this is not YAML: {}\nA name that begins with @, *, & or ! needs quotes.",
                              place.to_string(), error.msg));
    }
    if (!document.IsSequence()) {
      fail(document,
           "rules must be a list; begin each rule with a dash, as in\n- remove: {op: Dropout}\n- rename: {old: new}");
    }
    std::vector<Rule> rules;
    for (const YAML::Node& node : document) rules.push_back(read_rule(node));
    return rules;
  }

 private:
  // ---- Rules

  Rule read_rule(const YAML::Node& node) {
    std::vector<std::string> kind_names;
    for (const KindInfo& info : kinds()) kind_names.emplace_back(info.key);
    if (!node.IsMap()) fail(node, fmt::format("a rule must begin with its kind: {}", joined(kind_names)));
    const KindInfo* kind = nullptr;
    for (const KindInfo& info : kinds()) {
      if (!find(node, info.key)) continue;
      if (kind != nullptr) {
        fail(node, fmt::format("`{}` and `{}` are in one rule; write two rules", kind->key, info.key));
      }
      kind = &info;
    }
    if (kind == nullptr) {
      const std::string first = node.size() == 0 ? "" : text_of(node.begin()->first, "a key");
      fail(node, fmt::format("this rule has no kind{} A rule has one of {}", did_you_mean(first, kind_names, "."),
                             joined(kind_names)));
    }
    std::vector<std::string> keys{std::string(kind->key), "optional", "reason"};
    keys.insert(keys.end(), kind->options.begin(), kind->options.end());
    check_keys(node, keys, fmt::format("a rule `{}`", kind->key));

    Rule rule;
    rule.place = place_of(node);
    rule.kind = kind->kind;
    read_common(node, rule);
    read_kind(*find(node, kind->key), node, rule);
    check_together(node, rule);
    return rule;
  }

  void read_common(const YAML::Node& node, Rule& rule) {
    if (const auto value = find(node, "optional")) rule.optional = flag_of(*value, "optional");
    if (const auto value = find(node, "changes_result")) rule.changes_result = flag_of(*value, "changes_result");
    if (const auto value = find(node, "prove")) rule.prove = flag_of(*value, "prove");
    if (const auto value = find(node, "reason")) rule.reason = text_of(*value, "`reason`");
    if (const auto value = find(node, "stage")) {
      const std::string stage = text_of(*value, "`stage`");
      if (stage != "before" && stage != "after") {
        fail(*value, fmt::format("`stage` is {}; allowed are before and after (the fusions)", stage));
      }
      rule.stage = stage == "after" ? Rule::Stage::after : Rule::Stage::before;
    }
    if (const auto value = find(node, "attributes")) rule.attributes = attributes_of(*value);
    if (const auto value = find(node, "when")) read_when(*value, rule.select);
    if (const auto value = find(node, "outputs")) {
      for (const NamePattern& name : patterns_of(*value, "outputs")) rule.outputs.push_back(name.text());
    }
    if (const auto value = find(node, "inputs")) {
      if (!value->IsSequence()) fail(*value, "`inputs` must be a list of names of tensors or numbers of inputs");
      rule.inputs.emplace();
      for (const YAML::Node& item : *value) rule.inputs->push_back(value_of(item));
    }
    if (const auto value = find(node, "input")) rule.input = index_of(*value);
    read_operator(node, rule);
    if (const auto value = find(node, "int8")) {
      rule.int8 = Rule::Int8();
      if (!rule.with.computes_in_int8()) return;  // check_together refuses this once the whole rule is read
      check_keys(*value, {rule.with.input_scale(), rule.with.output_scale()}, "`int8`");
      rule.int8 = Rule::Int8{.input_scale = scale_of(*value, rule.with.input_scale()),
                             .output_scale = scale_of(*value, rule.with.output_scale())};
    }
  }

  double scale_of(const YAML::Node& map, std::string_view key) const {
    const auto node = find(map, key);
    if (!node) fail(map, fmt::format("`{}` is missing: the scale, the real value of one step of int8", key));
    const auto number = node->IsScalar() ? to_number(node->Scalar()) : std::nullopt;
    if (!number || !(*number > 0) || std::isinf(*number))
      fail(*node, fmt::format("`{}` must be a number above 0", key));
    return *number;
  }

  std::vector<std::pair<std::string, RuleValue>> attributes_of(const YAML::Node& map) const {
    if (!map.IsMap()) fail(map, "`attributes` must be a table of names and values");
    std::vector<std::pair<std::string, RuleValue>> result;
    for (const auto& entry : map) {
      std::string name = text_of(entry.first, "the name of an attribute");
      const bool twice =
          std::any_of(result.begin(), result.end(), [&](const auto& known) { return known.first == name; });
      if (twice) fail(entry.first, fmt::format("attribute `{}` is given twice", name));
      RuleValue value = value_of(entry.second);
      value.place = place_of(entry.first);
      result.emplace_back(std::move(name), std::move(value));
    }
    return result;
  }

  TensorCondition tensor_condition(const YAML::Node& map) const {
    TensorCondition condition;
    if (const auto node = find(map, "dtype")) {
      condition.dtype = onnx::parse_element_type(text_of(*node, "`dtype`"));
      if (!condition.dtype)
        fail(*node, fmt::format("unknown type {}; types are f32, f16, i64 and so on", node->Scalar()));
    }
    if (const auto node = find(map, "rank")) condition.rank = index_of(*node);
    if (const auto node = find(map, "shape")) {
      if (!node->IsSequence()) fail(*node, "`shape` must be a list such as [any, 3, H, W]");
      condition.shape.emplace();
      for (const YAML::Node& item : *node) condition.shape->push_back(text_of(item, "a dimension"));
    }
    return condition;
  }

  void read_when(const YAML::Node& when, Selector& select) const {
    check_keys(when, {"attributes", "dtype", "rank", "shape", "inputs"}, "`when`");
    if (const auto node = find(when, "attributes")) select.attributes = attributes_of(*node);
    TensorCondition first = tensor_condition(when);
    if (first.dtype || first.rank || first.shape) select.inputs.emplace(0, std::move(first));
    if (const auto node = find(when, "inputs")) {
      if (!node->IsMap()) fail(*node, "`inputs` must be a table, as in {1: {rank: 4}}");
      for (const auto& entry : *node) {
        check_keys(entry.second, {"dtype", "rank", "shape"}, "a condition on an input");
        if (!select.inputs.emplace(index_of(entry.first), tensor_condition(entry.second)).second) {
          fail(entry.first, "this input has two conditions; dtype, rank and shape below `when` apply to input 0");
        }
      }
    }
  }

  void read_selector(const YAML::Node& node, Selector& select) const {
    check_keys(node, {"op", "name", "scope", "layer", "layer_type"}, "the selection of a rule");
    if (node.size() == 0) fail(node, "select nodes with op, name, scope, layer or layer_type");
    if (const auto value = find(node, "op")) select.op = pattern_of(*value, "op");
    if (const auto value = find(node, "name")) select.name = pattern_of(*value, "name");
    if (const auto value = find(node, "layer")) select.layer = pattern_of(*value, "layer");
    if (const auto value = find(node, "layer_type")) select.layer_type = pattern_of(*value, "layer_type");
    if (const auto value = find(node, "scope")) {
      std::string scope = text_of(*value, "`scope`");
      if (scope.ends_with("/*")) scope.resize(scope.size() - 2);
      while (scope.ends_with('/')) scope.pop_back();
      while (scope.starts_with('/')) scope.erase(0, 1);
      select.scope = NamePattern(scope, place_of(*value));
      if (select.op || select.name || select.layer || select.layer_type) {
        fail(*value, "`scope` must be alone: it selects all nodes below a name as one group");
      }
    }
  }

  // ---- The new operator

  void read_operator(const YAML::Node& node, Rule& rule) const {
    const auto with = find(node, "with");
    const auto plugin = find(node, "plugin");
    if (with && plugin) fail(*plugin, "`with` and `plugin` are in one rule; allowed is one of them");
    if (with) rule.with = operator_of(*with);
    if (plugin) {
      check_keys(*plugin, {"name", "version", "namespace"}, "`plugin`");
      const auto name = find(*plugin, "name");
      if (!name)
        fail(*plugin, "`name` is missing: the name of the plugin's creator, which `graft plugins LIB.so` lists");
      rule.with.is_plugin = true;
      rule.with.domain = "trt.plugins";
      rule.with.op_type = text_of(*name, "`name`");
      const auto version = find(*plugin, "version");
      rule.with.plugin_version = version ? text_of(*version, "`version`") : "1";
      const auto space = find(*plugin, "namespace");
      if (space && !space->IsScalar()) fail(*space, "`namespace` must be a string");
      rule.with.plugin_namespace = space ? space->Scalar() : "";
    }
  }

  /// Lists all operators by their origin, beginning with the user's libraries: "libmy_ops.so has Snake; Graft's are
  /// L2Normalize, ...".
  static std::string lists_of_operators() {
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

  RuleOperator operator_of(const YAML::Node& node) const {
    const std::string text = text_of(node, "`with`");
    RuleOperator result;
    const std::size_t colons = text.find("::");
    result.domain = colons == std::string::npos ? "" : text.substr(0, colons);
    result.op_type = colons == std::string::npos ? text : text.substr(colons + 2);
    if (result.domain == "ai.onnx") result.domain.clear();
    if (result.domain.empty() && onnx::is_standard_operator("", result.op_type)) return result;
    if (result.domain.empty() || result.domain == onnx_domain) {
      result.graft = find_operator(result.op_type);
      if (result.graft != nullptr) {
        result.domain = onnx_domain;
        return result;
      }
      std::vector<std::string> known;
      if (result.domain.empty()) {
        for (const onnx::OperatorSchema* schema : onnx::all_schemas()) {
          if (schema->removed == 0) known.emplace_back(schema->name);
        }
      }
      for (const OperatorType* type : operators()) known.emplace_back(type->name);
      fail(node, fmt::format("there is no operator {}{} {}; write ONNX's operators with their names, and operators of "
                             "other domains as domain::Operator{}",
                             result.op_type, did_you_mean(result.op_type, known, "."), lists_of_operators(),
                             operator_libraries().empty() ? fmt::format("; load libraries of operators with {}",
                                                                        setting_name(Setting::operator_libraries))
                                                          : ""));
    }
    return result;
  }

  // ---- Kinds

  void read_kind(const YAML::Node& node, const YAML::Node& whole, Rule& rule) {
    switch (rule.kind) {
      case Kind::replace:
        read_selector(node, rule.select);
        rule.text = fmt::format("replace {} by {}", text_of_selector(rule.select), rule.with.to_string());
        return;
      case Kind::remove:
        read_selector(node, rule.select);
        rule.text = fmt::format("remove {}", text_of_selector(rule.select));
        return;
      case Kind::set:
        read_selector(node, rule.select);
        if (rule.attributes.empty()) fail(whole, "`attributes` is missing: the attributes to set");
        rule.text = fmt::format("set attributes of {}", text_of_selector(rule.select));
        if (rule.select.op && rule.select.op->is_exact()) {
          RuleOperator op;
          const std::string& name = rule.select.op->text();
          if (onnx::is_standard_operator("", name)) {
            op.op_type = name;
            check_attributes(op, rule.attributes);
          }
        }
        return;
      case Kind::match:
        try {
          rule.pattern =
              std::make_shared<const onnx::Pattern>(text_of(node, "a pattern"), rule.place.to_string(), "the pattern");
        } catch (const Error& error) {
          fail(node,
               fmt::format("{}\nA pattern has lines such as `y = Relu(Add(x, @bias))`; the last line is the last node",
                           error.what()));
        }
        rule.text = fmt::format("replace a pattern by {}", rule.with.to_string());
        return;
      case Kind::cut: read_cut(node, rule); return;
      case Kind::dynamic_batch:
        rule.stage = Rule::Stage::interface;
        rule.symbol = text_of(node, "`dynamic_batch`");
        if (parse_dim(rule.symbol, place_of(node)).is_constant()) {
          fail(node, "`dynamic_batch` must be the new name of the dimension, as in dynamic_batch: N");
        }
        rule.text = fmt::format("make the batch size dynamic, with the name {}", rule.symbol);
        return;
      case Kind::add_outputs:
      case Kind::drop_outputs:
        rule.stage = Rule::Stage::interface;
        rule.names = patterns_of(node, rule.kind == Kind::add_outputs ? "add_outputs" : "drop_outputs");
        rule.text =
            fmt::format("{} outputs {}", rule.kind == Kind::add_outputs ? "add" : "drop", text_of_names(rule.names));
        return;
      case Kind::rename:
      case Kind::rename_nodes:
      case Kind::shape:
      case Kind::dtype:
      case Kind::fix:
      case Kind::constant: read_table(node, rule); return;
    }
  }

  static std::string text_of_names(const std::vector<NamePattern>& names) {
    std::string text;
    for (const NamePattern& name : names) text += (text.empty() ? "" : ", ") + name.text();
    return text;
  }

  static std::string text_of_selector(const Selector& select) {
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

  void read_cut(const YAML::Node& node, Rule& rule) const {
    rule.stage = Rule::Stage::interface;
    check_keys(node, {"from", "to"}, "`cut`");
    if (node.size() == 0)
      fail(node, "`cut` needs `from`, the tensors at which the part begins, or `to`, where it ends, or both");
    if (const auto from = find(node, "from")) rule.from = patterns_of(*from, "from");
    if (const auto to = find(node, "to")) rule.to = patterns_of(*to, "to");
    rule.text = fmt::format("keep the part from {} to {}", rule.from.empty() ? "the inputs" : text_of_names(rule.from),
                            rule.to.empty() ? "the outputs" : text_of_names(rule.to));
  }

  void read_table(const YAML::Node& node, Rule& rule) const {
    if (rule.kind != Kind::constant) rule.stage = Rule::Stage::interface;
    const auto info =
        std::find_if(kinds().begin(), kinds().end(), [&](const KindInfo& k) { return k.kind == rule.kind; });
    if (!node.IsMap() || node.size() == 0) {
      fail(node, fmt::format("`{}` must be a table of names and new values", info->key));
    }
    std::string names;
    for (const auto& entry : node) {
      Rule::Entry item{pattern_of(entry.first, info->key), value_of_entry(rule.kind, entry.second)};
      names += (names.empty() ? "" : ", ") + item.name.text();
      const bool takes_patterns = rule.kind == Kind::rename || rule.kind == Kind::rename_nodes ||
                                  rule.kind == Kind::shape || rule.kind == Kind::dtype;
      if (!takes_patterns && !item.name.is_exact()) fail(entry.first, "this name must be exact, without wildcards");
      rule.entries.push_back(std::move(item));
    }
    rule.text = fmt::format("{} {}", info->key, names);
  }

  RuleValue value_of_entry(Kind kind, const YAML::Node& node) const {
    RuleValue value{place_of(node), {}};
    switch (kind) {
      case Kind::shape: {
        if (!node.IsSequence()) fail(node, "a shape must be a list of sizes and names, as in [N, 3, 224, 224]");
        std::vector<std::string> dims;
        for (const YAML::Node& item : node) {
          dims.push_back(text_of(item, "a dimension"));
          static_cast<void>(parse_dim(dims.back(), place_of(item)));
        }
        value.data = std::move(dims);
        return value;
      }
      case Kind::dtype:
        value.data = text_of(node, "a type");
        if (!onnx::parse_element_type(node.Scalar())) {
          fail(node, fmt::format("unknown type {}; types are f32, f16, u8, i64 and so on", node.Scalar()));
        }
        return value;
      case Kind::fix: {
        const auto size = node.IsScalar() ? to_integer(node.Scalar()) : std::nullopt;
        if (!size || *size < 1) fail(node, "the size of a dimension must be an integer of at least 1");
        value.data = *size;
        return value;
      }
      case Kind::constant: return value_of(node);
      default: value.data = text_of(node, "a new name"); return value;
    }
  }

  void check_together(const YAML::Node& node, const Rule& rule) const {
    const bool brings = rule.kind == Kind::replace || rule.kind == Kind::match;
    if (brings && rule.with.op_type.empty()) {
      fail(node,
           "`with` is missing: the new operator, as in with: L2Normalize; or `plugin` for a plugin of another library");
    }
    if (rule.kind == Kind::match) check_names(node, rule);
    if (rule.kind != Kind::set) check_attributes(rule.with, rule.attributes);
    const bool is_foreign = rule.with.is_plugin || (!rule.with.domain.empty() && rule.with.graft == nullptr &&
                                                    rule.with.domain != "ai.onnx.ml");
    if (brings && rule.with.is_plugin && rule.prove) {
      fail(node, fmt::format("{} cannot run on the CPU, so this rule cannot be proven; to use it without a proof, "
                             "write prove: false and a reason",
                             rule.with.to_string()));
    }
    if (is_foreign && rule.int8) fail(node, "`int8` is allowed only for operators of Graft");
    if (rule.int8) {
      if (!rule.with.computes_in_int8()) {
        fail(node, fmt::format("{} cannot compute in int8", rule.with.to_string()));
      }
      for (const auto& [name, value] : rule.attributes) {
        if (name.ends_with("_scale")) {
          throw Error(fmt::format("{}: `{}` is set by `int8`; set it there", value.place.to_string(), name));
        }
      }
      if (!rule.changes_result) {
        fail(node, "int8 changes the result; write changes_result: true and a reason");
      }
    }
    if (rule.changes_result && rule.reason.empty()) fail(node, "changes_result: true needs a `reason` for the report");
    if (!rule.prove && rule.reason.empty()) fail(node, "prove: false needs a `reason` for the report");
    if (rule.select.scope && (!rule.select.attributes.empty() || !rule.select.inputs.empty())) {
      fail(node, "`when` applies to single nodes; it is not allowed with `scope`, which selects a group");
    }
  }

  void check_input_count(const YAML::Node& node, const Rule& rule,
                         const std::set<std::string, std::less<>>& names) const {
    const auto counts = rule.with.port_counts();
    const std::size_t given = rule.inputs ? rule.inputs->size() : 1;
    if (!counts || (given >= counts->fewest_inputs && given <= counts->most_inputs)) return;
    const std::size_t fewest = counts->fewest_inputs;
    const std::size_t most = counts->most_inputs;
    std::vector<std::string> ports;
    for (std::size_t i = 0; rule.with.graft != nullptr && i < rule.with.graft->input_count(); ++i) {
      ports.emplace_back(rule.with.graft->ports[i].name);
    }
    const std::string allowed = fewest == most ? std::to_string(most)
                                : given > most ? fmt::format("{} at most", most)
                                               : fmt::format("{} or more", fewest);
    fail(rule.inputs ? *find(node, "inputs") : node,
         fmt::format("{} has {} input{}{}, but {}. List the names of the pattern that it reads in `inputs`, in its "
                     "order; the pattern has {}",
                     rule.with.to_string(), allowed, most == 1 ? "" : "s",
                     ports.empty() ? "" : fmt::format(" ({})", joined(ports)),
                     rule.inputs ? fmt::format("`inputs` lists {}", given) : "without `inputs` only x is read",
                     joined({names.begin(), names.end()})));
  }

  /// Throws Error for `beta: beta` where `beta: "@beta"` is meant.
  static void check_is_no_constant(const Rule& rule, const std::string& name, const RuleValue& value) {
    const auto* text = std::get_if<std::string>(&value.data);
    if (text == nullptr || !rule.pattern->constant_names().contains(*text)) return;
    const AttributeInfo* info = rule.with.graft == nullptr ? nullptr : rule.with.graft->find_attribute(name);
    if (info != nullptr && info->type == AttributeType::text) return;
    const onnx::OperatorSchema* schema = rule.with.domain.empty() ? onnx::find_schema(rule.with.op_type) : nullptr;
    if (schema != nullptr && schema->attribute_type(name) == AttributeType::text) return;
    throw Error(
        fmt::format("{}: attribute `{}` is the string {}; for the constant of that name in the pattern write \"@{}\"",
                    value.place.to_string(), name, *text, *text));
  }

  /// Throws Error for a constant of the pattern that nothing reads, if the new operator seems to need it: the operator
  /// has an attribute of that name, or the pattern reads the constant from an attribute at one place only. Any other
  /// `@name` that is not read is allowed: it only requires that an input is constant, or that an attribute is present.
  void check_may_be_unread(const YAML::Node& node, const Rule& rule, const std::string& name) const {
    const onnx::Pattern::Capture& constant = rule.pattern->constant_names().at(name);
    const bool is_given = std::any_of(rule.attributes.begin(), rule.attributes.end(),
                                      [&](const auto& attribute) { return attribute.first == name; });
    const AttributeInfo* own = rule.with.graft == nullptr ? nullptr : rule.with.graft->find_attribute(name);
    if (own != nullptr && !is_given) {
      fail(node,
           fmt::format(
               "the pattern has @{0}, but the rule does not use it: the attribute `{0}` of {1} would have its default; "
               "write it under `attributes`, as in {{{0}: \"@{0}\"}}, or rename the constant if you want the default",
               name, rule.with.to_string()));
    }
    // A Graft operator has attributes of its own for what the network's nodes compute.
    if (own == nullptr && rule.with.graft != nullptr && rule.prove && constant.of_attribute && constant.places == 1) {
      fail(node, fmt::format("the pattern has @{0}, but the rule does not use it; assign it to an attribute of {1}, as "
                             "in {{attribute: \"@{0}\"}}, or remove it from the braces",
                             name, rule.with.to_string()));
    }
  }

  /// Throws Error if a rule reads a name that its pattern does not have, whether or not a network matches the pattern.
  void check_names(const YAML::Node& node, const Rule& rule) const {
    const auto& values = rule.pattern->value_names();
    const auto& constants = rule.pattern->constant_names();
    std::set<std::string, std::less<>> unread;
    for (const auto& [name, constant] : constants) unread.insert(name);
    const std::vector<std::string> constant_names(unread.begin(), unread.end());
    if (!rule.inputs && !values.contains("x")) {
      fail(node, fmt::format("`inputs` is missing: list the names of the pattern that the operator reads, in its "
                             "order; the names are {}",
                             joined({values.begin(), values.end()})));
    }
    check_input_count(node, rule, values);
    for (const RuleValue& input : rule.inputs.value_or(std::vector<RuleValue>{})) {
      const auto* name = std::get_if<std::string>(&input.data);
      if (name == nullptr) {
        throw Error(fmt::format("{}: the inputs of a pattern must be names of the pattern", input.place.to_string()));
      }
      const std::string plain = name->starts_with('@') ? name->substr(1) : *name;
      unread.erase(plain);
      if (plain == "_" || values.contains(plain) || constants.contains(plain)) continue;
      throw Error(fmt::format("{}: the pattern has no name {}; its names are {}", input.place.to_string(), *name,
                              joined({values.begin(), values.end()})));
    }
    for (const auto& attribute : rule.attributes) {
      const std::string& name = attribute.first;
      const RuleValue& value = attribute.second;
      check_is_no_constant(rule, name, value);
      static_cast<void>(evaluate(value, [&](const std::string& constant) -> std::optional<RuleValue::Data> {
        unread.erase(constant);
        if (constants.contains(constant)) return 1.;
        throw Error(
            fmt::format("{}: attribute `{}` is computed from @{}, which the pattern does not have; its "
                        "constants are {}",
                        value.place.to_string(), name, constant, joined(constant_names)));
      }));
    }
    for (const std::string& name : unread) check_may_be_unread(node, rule, name);
  }
};

}  // namespace

std::optional<PortCounts> RuleOperator::port_counts() const {
  if (graft != nullptr) return PortCounts{graft->required_input_count(), graft->most_inputs(), graft->output_count()};
  const onnx::OperatorSchema* schema = domain.empty() ? onnx::find_schema(op_type, onnx::newest_opset) : nullptr;
  if (schema == nullptr) return std::nullopt;
  return PortCounts{schema->fewest_inputs, schema->most_inputs, schema->most_outputs};
}

std::vector<Rule> parse_rules(const std::string& text, const std::string& name) { return Reader(name).read(text); }

std::vector<Rule> read_rules(const std::filesystem::path& path) {
  return parse_rules(std::string(onnx::MappedFile::open(path, most_rule_bytes)->view()), path.string());
}

}  // namespace graft::rules

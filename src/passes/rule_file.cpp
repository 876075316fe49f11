// Reads rules from YAML. Everything that can be said without the model is said here, with line and column.
#include "passes/rule_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <re2/re2.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <limits>
#include <sstream>

#include "core/suggest.hpp"
#include "graft/error.hpp"
#include "graft/registry.hpp"
#include "graph/mapped_file.hpp"
#include "graph/onnx_io.hpp"
#include "graph/operator_node.hpp"
#include "graph/schema.hpp"

namespace graft {
namespace {

using Kind = Rule::Kind;

constexpr std::size_t most_bytes = std::size_t{16} << 20U;

struct KindInfo {
  std::string_view key;
  Kind kind;
  std::vector<std::string> options;  ///< Beside those of all kinds.
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

std::optional<std::int64_t> to_integer(const std::string& text) {
  if (text.empty()) return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const long long value = std::strtoll(text.c_str(), &end, 10);
  if (errno != 0 || *end != '\0' || std::isspace(static_cast<unsigned char>(text.front())) != 0) return std::nullopt;
  return value;
}

std::optional<double> to_number(const std::string& text) {
  if (text == ".inf" || text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-.inf" || text == "-inf") return -std::numeric_limits<double>::infinity();
  if (text.empty() || text.find_first_not_of("0123456789+-.eE") != std::string::npos) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (*end != '\0') return std::nullopt;
  return value;
}

std::string joined(const std::vector<std::string>& names) {
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

/// The regular expression of a name with `*` and `?`; each is a group, so that `rename` can use what it took.
std::string expression_of(const std::string& glob) {
  std::string result;
  for (const char c : glob) {
    if (c == '*') {
      result += "(.*)";
    } else if (c == '?') {
      result += "(.)";
    } else {
      result += RE2::QuoteMeta(re2::StringPiece(&c, 1));
    }
  }
  return result;
}

class Reader {
 public:
  explicit Reader(std::string name) : name_(std::move(name)) {}

  std::vector<Rule> read(const std::string& text) {
    if (text.size() > most_bytes) {
      throw Error(fmt::format("{}: {} bytes of rules; allowed are {}", name_, text.size(), most_bytes));
    }
    YAML::Node document;
    try {
      document = YAML::Load(text);
    } catch (const YAML::Exception& error) {
      const Place place{name_, error.mark.line + 1, error.mark.column + 1};
      throw Error(fmt::format("{}: this is no YAML: {}\nA name that begins with @, *, & or ! needs quotes.",
                              place.to_string(), error.msg));
    }
    if (!document.IsSequence()) {
      fail(document, "rules are a list; begin each with a dash, as in\n- remove: {op: Dropout}\n- rename: {old: new}");
    }
    std::vector<Rule> rules;
    for (const YAML::Node& node : document) rules.push_back(read_rule(node));
    return rules;
  }

 private:
  [[nodiscard]] Place place_of(const YAML::Node& node) const {
    const YAML::Mark mark = node.Mark();
    return {name_, mark.is_null() ? 1 : mark.line + 1, mark.is_null() ? 1 : mark.column + 1};
  }
  [[noreturn]] void fail(const YAML::Node& node, const std::string& message) const {
    throw Error(fmt::format("{}: {}", place_of(node).to_string(), message));
  }

  /// Nothing where the map has no such key.
  static std::optional<YAML::Node> find(const YAML::Node& map, std::string_view key) {
    for (const auto& entry : map) {
      if (entry.first.IsScalar() && entry.first.Scalar() == key) return entry.second;
    }
    return std::nullopt;
  }

  void check_keys(const YAML::Node& map, const std::vector<std::string>& allowed, std::string_view what) const {
    if (!map.IsMap())
      fail(map, fmt::format("{} is a table of names and values; its keys are {}", what, joined(allowed)));
    std::vector<std::string> seen;
    for (const auto& entry : map) {
      const std::string key = text_of(entry.first, "a key");
      if (std::find(allowed.begin(), allowed.end(), key) == allowed.end()) {
        fail(entry.first,
             fmt::format("{} has no key `{}`{} Its keys are {}", what, key,
                         did_you_mean(key, allowed).empty() ? "." : did_you_mean(key, allowed), joined(allowed)));
      }
      if (std::find(seen.begin(), seen.end(), key) != seen.end()) {
        fail(entry.first, fmt::format("`{}` is given twice", key));
      }
      seen.push_back(key);
    }
  }

  [[nodiscard]] std::string text_of(const YAML::Node& node, std::string_view what) const {
    if (!node.IsScalar() || node.Scalar().empty()) fail(node, fmt::format("{} is a text", what));
    return node.Scalar();
  }
  [[nodiscard]] bool flag_of(const YAML::Node& node, std::string_view what) const {
    const std::string text = node.IsScalar() ? node.Scalar() : "";
    if (text != "true" && text != "false") fail(node, fmt::format("`{}` is true or false", what));
    return text == "true";
  }
  [[nodiscard]] NamePattern pattern_of(const YAML::Node& node, std::string_view what) const {
    return {text_of(node, fmt::format("`{}`", what)), place_of(node)};
  }
  [[nodiscard]] std::vector<NamePattern> patterns_of(const YAML::Node& node, std::string_view what) const {
    if (node.IsScalar()) return {pattern_of(node, what)};
    if (!node.IsSequence() || node.size() == 0) fail(node, fmt::format("`{}` is a name, or a list of names", what));
    std::vector<NamePattern> result;
    for (const YAML::Node& item : node) result.push_back(pattern_of(item, what));
    return result;
  }

  [[nodiscard]] RuleValue value_of(const YAML::Node& node) const {
    RuleValue value{place_of(node), {}};
    if (node.IsScalar()) {
      value.data = scalar_of(node);
      return value;
    }
    if (!node.IsSequence()) fail(node, "a value is a number, a text, or a list of one kind of these");
    std::vector<std::int64_t> integers;
    std::vector<double> numbers;
    std::vector<std::string> texts;
    for (const YAML::Node& item : node) {
      if (!item.IsScalar()) fail(item, "a list holds numbers or texts, no further lists");
      const RuleValue::Data data = scalar_of(item);
      if (const auto* integer = std::get_if<std::int64_t>(&data)) {
        integers.push_back(*integer);
        numbers.push_back(static_cast<double>(*integer));
      } else if (const auto* number = std::get_if<double>(&data)) {
        numbers.push_back(*number);
      } else {
        texts.push_back(std::get<std::string>(data));
      }
    }
    if (!texts.empty() && texts.size() != node.size()) fail(node, "a list holds numbers or texts, not both");
    if (!texts.empty()) {
      value.data = std::move(texts);
    } else if (integers.size() == node.size()) {
      value.data = std::move(integers);
    } else {
      value.data = std::move(numbers);
    }
    return value;
  }

  static RuleValue::Data scalar_of(const YAML::Node& node) {
    const std::string& text = node.Scalar();
    if (node.Tag() == "!") return text;  // in quotes
    if (text == "true") return std::int64_t{1};
    if (text == "false") return std::int64_t{0};
    if (const auto integer = to_integer(text)) return *integer;
    if (const auto number = to_number(text)) return *number;
    return text;
  }

  // ---- Rules

  Rule read_rule(const YAML::Node& node) {
    std::vector<std::string> kind_names;
    for (const KindInfo& info : kinds()) kind_names.emplace_back(info.key);
    if (!node.IsMap()) fail(node, fmt::format("a rule begins with what it does: {}", joined(kind_names)));
    const KindInfo* kind = nullptr;
    for (const KindInfo& info : kinds()) {
      if (!find(node, info.key)) continue;
      if (kind != nullptr) {
        fail(node,
             fmt::format("`{}` and `{}` in one rule; each rule does one thing, so write two", kind->key, info.key));
      }
      kind = &info;
    }
    if (kind == nullptr) {
      const std::string first = node.size() == 0 ? "" : text_of(node.begin()->first, "a key");
      fail(node, fmt::format("this rule does not say what it does{} A rule has one of {}",
                             did_you_mean(first, kind_names).empty() ? "." : did_you_mean(first, kind_names),
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
        fail(*value, fmt::format("`stage` is {}; allowed are before (the fusions) and after", stage));
      }
      rule.stage = stage == "after" ? Rule::Stage::after : Rule::Stage::before;
    }
    if (const auto value = find(node, "attributes")) rule.attributes = attributes_of(*value);
    if (const auto value = find(node, "when")) read_when(*value, rule.select);
    if (const auto value = find(node, "outputs")) {
      for (const NamePattern& name : patterns_of(*value, "outputs")) rule.outputs.push_back(name.text());
    }
    if (const auto value = find(node, "inputs")) {
      if (!value->IsSequence()) fail(*value, "`inputs` is a list: names of tensors, or numbers of inputs");
      rule.inputs.emplace();
      for (const YAML::Node& item : *value) rule.inputs->push_back(value_of(item));
    }
    if (const auto value = find(node, "input")) rule.input = index_of(*value);
    if (const auto value = find(node, "int8")) {
      check_keys(*value, {"x_scale", "y_scale"}, "`int8`");
      rule.int8 = Rule::Int8{scale_of(*value, "x_scale"), scale_of(*value, "y_scale")};
    }
    read_operator(node, rule);
  }

  std::size_t index_of(const YAML::Node& node) const {
    const auto index = node.IsScalar() ? to_integer(node.Scalar()) : std::nullopt;
    if (!index || *index < 0) fail(node, "an input is named by its number, from 0 on");
    return static_cast<std::size_t>(*index);
  }

  double scale_of(const YAML::Node& map, std::string_view key) const {
    const auto node = find(map, key);
    if (!node) fail(map, fmt::format("`{}` is missing: the real value of one step of int8", key));
    const auto number = node->IsScalar() ? to_number(node->Scalar()) : std::nullopt;
    if (!number || !(*number > 0) || std::isinf(*number)) fail(*node, fmt::format("`{}` is a number above 0", key));
    return *number;
  }

  std::vector<std::pair<std::string, RuleValue>> attributes_of(const YAML::Node& map) const {
    if (!map.IsMap()) fail(map, "`attributes` is a table of names and values");
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
      condition.dtype = parse_element_type(text_of(*node, "`dtype`"));
      if (!condition.dtype)
        fail(*node, fmt::format("there is no type {}; f32, f16, i64 and so on are", node->Scalar()));
    }
    if (const auto node = find(map, "rank")) condition.rank = index_of(*node);
    if (const auto node = find(map, "shape")) {
      if (!node->IsSequence()) fail(*node, "`shape` is a list such as [any, 3, H, W]");
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
      if (!node->IsMap()) fail(*node, "`inputs` is a table, as in {1: {rank: 4}}");
      for (const auto& entry : *node) {
        check_keys(entry.second, {"dtype", "rank", "shape"}, "a condition on an input");
        if (!select.inputs.emplace(index_of(entry.first), tensor_condition(entry.second)).second) {
          fail(entry.first,
               "there are two conditions on this input; dtype, rank and shape below `when` are on input 0");
        }
      }
    }
  }

  void read_selector(const YAML::Node& node, Selector& select) const {
    check_keys(node, {"op", "name", "scope", "layer", "layer_type"}, "what a rule is about");
    if (node.size() == 0) fail(node, "say which nodes: op, name, scope, layer or layer_type");
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
        fail(*value, "`scope` stands alone: all nodes below a name are taken together");
      }
    }
  }

  // ---- The operator that comes

  void read_operator(const YAML::Node& node, Rule& rule) const {
    const auto with = find(node, "with");
    const auto plugin = find(node, "plugin");
    if (with && plugin) fail(*plugin, "`with` and `plugin` in one rule; one operator comes");
    if (with) rule.with = operator_of(*with);
    if (plugin) {
      check_keys(*plugin, {"name", "version", "namespace"}, "`plugin`");
      const auto name = find(*plugin, "name");
      if (!name) fail(*plugin, "`name` is missing: that of the plugin's creator, as `graft plugins LIB.so` lists it");
      rule.with.is_plugin = true;
      rule.with.domain = "trt.plugins";
      rule.with.op_type = text_of(*name, "`name`");
      const auto version = find(*plugin, "version");
      rule.with.plugin_version = version ? text_of(*version, "`version`") : "1";
      const auto space = find(*plugin, "namespace");
      if (space && !space->IsScalar()) fail(*space, "`namespace` is a text");
      rule.with.plugin_namespace = space ? space->Scalar() : "";
    }
  }

  RuleOperator operator_of(const YAML::Node& node) const {
    const std::string text = text_of(node, "`with`");
    RuleOperator result;
    const std::size_t colons = text.find("::");
    result.domain = colons == std::string::npos ? "" : text.substr(0, colons);
    result.op_type = colons == std::string::npos ? text : text.substr(colons + 2);
    if (result.domain == "ai.onnx") result.domain.clear();
    std::vector<std::string> ours;
    for (const OperatorType* type : operators()) ours.emplace_back(type->name);
    if (result.domain.empty() && is_standard_operator("", result.op_type)) return result;
    if (result.domain.empty() || result.domain == onnx_domain) {
      result.graft = find_operator(result.op_type);
      if (result.graft != nullptr) {
        result.domain = onnx_domain;
        return result;
      }
      std::vector<std::string> known;
      if (result.domain.empty()) {
        for (const OperatorSchema* schema : all_schemas()) {
          if (schema->removed == 0) known.emplace_back(schema->name);
        }
      }
      known.insert(known.end(), ours.begin(), ours.end());
      fail(node, fmt::format("there is no operator {}{} Graft's are {}; ONNX's go by their own names; another domain's "
                             "are written domain::Operator",
                             result.op_type,
                             did_you_mean(result.op_type, known).empty() ? "." : did_you_mean(result.op_type, known),
                             joined(ours)));
    }
    return result;
  }

  /// Names and types of the attributes that a node of the operator gets.
  void check_attributes(const RuleOperator& with, const std::vector<std::pair<std::string, RuleValue>>& given) const {
    const OperatorSchema* form = with.domain.empty() ? find_schema(with.op_type, newest_opset) : nullptr;
    for (const auto& [name, value] : given) {
      std::optional<AttributeType> type;
      if (with.graft != nullptr) {
        const AttributeInfo* info = with.graft->find_attribute(name);
        std::vector<std::string> known;
        for (const AttributeInfo& attribute : with.graft->attributes) known.emplace_back(attribute.name);
        if (info == nullptr) fail_attribute(with, name, value.place, known);
        type = info->type;
      } else if (form != nullptr) {
        if (!form->has_attribute(name)) fail_attribute(with, name, value.place, form->attribute_names());
        type = form->attribute_type(name);
        if (!type) {
          throw Error(fmt::format("{}: attribute `{}` of {} is neither number nor text; a rule cannot give it",
                                  value.place.to_string(), name, with.to_string()));
        }
      } else {
        continue;
      }
      if (value.is_expression()) continue;
      const auto attribute = to_attribute(value, *type);
      if (!attribute) {
        throw Error(fmt::format("{}: attribute `{}` of {} is {}; allowed is {}", value.place.to_string(), name,
                                with.to_string(), value.to_string(), to_string(*type)));
      }
      if (with.graft == nullptr) continue;
      if (const Status status = check_attribute(*with.graft->find_attribute(name), *attribute); !status.ok()) {
        throw Error(fmt::format("{}: {}: {}", value.place.to_string(), with.to_string(), status.message()));
      }
    }
  }

  [[noreturn]] static void fail_attribute(const RuleOperator& with, const std::string& name, const Place& place,
                                          const std::vector<std::string>& known) {
    const std::string meant = did_you_mean(name, known);
    throw Error(fmt::format("{}: {} has no attribute `{}`{} Its attributes are {}", place.to_string(), with.to_string(),
                            name, meant.empty() ? "." : meant, joined(known)));
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
        if (rule.attributes.empty()) fail(whole, "`attributes` is missing: what to set");
        rule.text = fmt::format("set attributes of {}", text_of_selector(rule.select));
        if (rule.select.op && rule.select.op->is_exact()) {
          RuleOperator op;
          const std::string& name = rule.select.op->text();
          if (is_standard_operator("", name)) {
            op.op_type = name;
            check_attributes(op, rule.attributes);
          }
        }
        return;
      case Kind::match:
        try {
          rule.pattern = std::make_shared<const Pattern>(text_of(node, "a pattern"), rule.place.to_string());
        } catch (const Error& error) {
          fail(node, fmt::format("{}\nA pattern is lines such as `y = Relu(Add(x, @bias))`, the last node last",
                                 error.what()));
        }
        rule.text = fmt::format("replace a pattern by {}", rule.with.to_string());
        return;
      case Kind::cut: read_cut(node, rule); return;
      case Kind::dynamic_batch:
        rule.stage = Rule::Stage::interface;
        rule.symbol = text_of(node, "`dynamic_batch`");
        if (parse_dim(rule.symbol, place_of(node)).is_constant()) {
          fail(node, "`dynamic_batch` is the name that the dimension gets, as in dynamic_batch: N");
        }
        rule.text = fmt::format("make the batch dynamic, called {}", rule.symbol);
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
    if (node.size() == 0) fail(node, "say where the part begins, `from`, or where it ends, `to`, or both");
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
      fail(node, fmt::format("`{}` is a table of names and what they get", info->key));
    }
    std::string names;
    for (const auto& entry : node) {
      Rule::Entry item{pattern_of(entry.first, info->key), value_of_entry(rule.kind, entry.second)};
      names += (names.empty() ? "" : ", ") + item.name.text();
      const bool takes_patterns = rule.kind == Kind::rename || rule.kind == Kind::rename_nodes ||
                                  rule.kind == Kind::shape || rule.kind == Kind::dtype;
      if (!takes_patterns && !item.name.is_exact()) fail(entry.first, "this name has to be exact");
      rule.entries.push_back(std::move(item));
    }
    rule.text = fmt::format("{} {}", info->key, names);
  }

  RuleValue value_of_entry(Kind kind, const YAML::Node& node) const {
    RuleValue value{place_of(node), {}};
    switch (kind) {
      case Kind::shape: {
        if (!node.IsSequence()) fail(node, "a shape is a list of sizes and names, as in [N, 3, 224, 224]");
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
        if (!parse_element_type(node.Scalar())) {
          fail(node, fmt::format("there is no type {}; f32, f16, u8, i64 and so on are", node.Scalar()));
        }
        return value;
      case Kind::fix: {
        const auto size = node.IsScalar() ? to_integer(node.Scalar()) : std::nullopt;
        if (!size || *size < 1) fail(node, "a dimension is fixed to a size, at least 1");
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
           "`with` is missing: the operator that comes, as in with: L2Normalize; or `plugin` for somebody else's");
    }
    if (rule.kind != Kind::set) check_attributes(rule.with, rule.attributes);
    const bool is_foreign = rule.with.is_plugin || (!rule.with.domain.empty() && rule.with.graft == nullptr &&
                                                    rule.with.domain != "ai.onnx.ml");
    if (brings && rule.with.is_plugin && rule.prove) {
      fail(node, fmt::format("nothing on the CPU computes {}, so this rule cannot be proven; if you answer for it "
                             "yourself, write prove: false and a reason",
                             rule.with.to_string()));
    }
    if (is_foreign && rule.int8) fail(node, "`int8` is for operators of Graft");
    if (rule.int8) {
      if (rule.with.graft == nullptr || rule.with.graft->find_attribute("x_scale") == nullptr ||
          rule.with.graft->find_attribute("y_scale") == nullptr) {
        fail(node, fmt::format("{} does not compute in int8", rule.with.to_string()));
      }
      for (const auto& [name, value] : rule.attributes) {
        if (name.ends_with("_scale")) {
          throw Error(fmt::format("{}: `{}` is set by `int8`; give it there", value.place.to_string(), name));
        }
      }
      if (!rule.changes_result) {
        fail(node, "int8 changes the result; say so with changes_result: true and a reason");
      }
    }
    if (rule.changes_result && rule.reason.empty()) fail(node, "changes_result: true needs a `reason` for the report");
    if (!rule.prove && rule.reason.empty()) fail(node, "prove: false needs a `reason` for the report");
    if (rule.select.scope && (!rule.select.attributes.empty() || !rule.select.inputs.empty())) {
      fail(node, "`when` looks at single nodes; a scope is taken as a whole");
    }
    if (rule.kind == Kind::match && rule.inputs) {
      for (const RuleValue& input : *rule.inputs) {
        if (!std::holds_alternative<std::string>(input.data)) {
          throw Error(fmt::format("{}: the inputs of a pattern go by their names in it", input.place.to_string()));
        }
      }
    }
  }

  std::string name_;
};

// ---- Expressions

struct Numbers {
  std::vector<double> values;
  bool is_list = false;
  bool is_integer = false;
};

class Expression {
 public:
  Expression(std::string_view text, const Place& place,
             const std::function<std::optional<RuleValue::Data>(const std::string&)>& value_of)
      : text_(text), place_(place), value_of_(value_of) {}

  RuleValue::Data run() {
    skip_spaces();
    // A name alone may stand for anything, a text as well.
    const std::size_t start = position_;
    if (accept('@')) {
      const std::string name = read_name();
      if (position_ == text_.size()) return find(name);
      position_ = start;
    }
    const Numbers result = sum();
    if (position_ != text_.size()) fail("an operator is missing");
    if (result.is_integer) {
      std::vector<std::int64_t> integers;
      for (const double value : result.values) integers.push_back(static_cast<std::int64_t>(value));
      if (!result.is_list) return integers.at(0);
      return integers;
    }
    if (!result.is_list) return result.values.at(0);
    return result.values;
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw Error(fmt::format("{}: `{}`, column {}: {}", place_.to_string(), text_, position_ + 1, message));
  }
  void skip_spaces() {
    while (position_ < text_.size() && text_[position_] == ' ') ++position_;
  }
  bool accept(char c) {
    if (position_ >= text_.size() || text_[position_] != c) return false;
    ++position_;
    if (c != '@') skip_spaces();
    return true;
  }
  std::string read_name() {
    const std::size_t start = position_;
    while (position_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[position_])) != 0 || text_[position_] == '_')) {
      ++position_;
    }
    if (position_ == start) fail("a name is missing");
    std::string name(text_.substr(start, position_ - start));
    skip_spaces();
    return name;
  }
  RuleValue::Data find(const std::string& name) const {
    auto data = value_of_(name);
    if (!data) throw Error(fmt::format("{}: nothing is called @{} here", place_.to_string(), name));
    return *std::move(data);
  }

  Numbers combine(const Numbers& a, const Numbers& b, char how) const {
    if (a.is_list && b.is_list && a.values.size() != b.values.size()) {
      fail(fmt::format("lists of {} and {} elements", a.values.size(), b.values.size()));
    }
    Numbers result{{}, a.is_list || b.is_list, a.is_integer && b.is_integer && how != '/'};
    const std::size_t count = a.is_list ? a.values.size() : b.values.size();
    for (std::size_t i = 0; i < count; ++i) {
      const double x = a.is_list ? a.values[i] : a.values[0];
      const double y = b.is_list ? b.values[i] : b.values[0];
      result.values.push_back(how == '+' ? x + y : how == '-' ? x - y : how == '*' ? x * y : x / y);
    }
    return result;
  }

  Numbers sum() {
    if (++depth_ > 50) fail("parentheses nested deeper than 50");
    Numbers result = product();
    while (true) {
      if (accept('+')) {
        result = combine(result, product(), '+');
      } else if (accept('-')) {
        result = combine(result, product(), '-');
      } else {
        --depth_;
        return result;
      }
    }
  }

  Numbers product() {
    Numbers result = factor();
    while (true) {
      if (accept('*')) {
        result = combine(result, factor(), '*');
      } else if (accept('/')) {
        result = combine(result, factor(), '/');
      } else {
        return result;
      }
    }
  }

  Numbers factor() {
    bool negated = false;
    while (accept('-')) negated = !negated;
    Numbers result;
    if (accept('(')) {
      result = sum();
      if (!accept(')')) fail("`)` is missing");
    } else if (accept('@')) {
      result = to_numbers(find(read_name()));
    } else if (position_ < text_.size() && std::isalpha(static_cast<unsigned char>(text_[position_])) != 0) {
      const std::string name = read_name();
      if (name != "sqrt" || !accept('(')) fail("the only function is sqrt(...)");
      result = sum();
      if (!accept(')')) fail("`)` is missing");
      result.is_integer = false;
      for (double& value : result.values) value = std::sqrt(value);
    } else {
      result = number();
    }
    if (negated) {
      for (double& value : result.values) value = -value;
    }
    return result;
  }

  Numbers to_numbers(const RuleValue::Data& data) const {
    if (const auto* integer = std::get_if<std::int64_t>(&data)) return {{static_cast<double>(*integer)}, false, true};
    if (const auto* value = std::get_if<double>(&data)) return {{*value}, false, false};
    if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&data)) {
      return {std::vector<double>(integers->begin(), integers->end()), true, true};
    }
    if (const auto* values = std::get_if<std::vector<double>>(&data)) return {*values, true, false};
    fail("a text is no number");
  }

  Numbers number() {
    const std::size_t start = position_;
    const auto at = [&](std::size_t i) { return i < text_.size() ? text_[i] : '\0'; };
    while (std::isdigit(static_cast<unsigned char>(at(position_))) != 0 || at(position_) == '.' ||
           (position_ > start && (at(position_) == 'e' || at(position_) == 'E')) ||
           (position_ > start && (at(position_) == '-' || at(position_) == '+') &&
            (at(position_ - 1) == 'e' || at(position_ - 1) == 'E'))) {
      ++position_;
    }
    const std::string text(text_.substr(start, position_ - start));
    const auto value = to_number(text);
    if (!value) fail("a number, @name or `(` is missing");
    skip_spaces();
    return {{*value}, false, to_integer(text).has_value()};
  }

  std::string_view text_;
  const Place& place_;
  const std::function<std::optional<RuleValue::Data>(const std::string&)>& value_of_;
  std::size_t position_ = 0;
  int depth_ = 0;
};

}  // namespace

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
  const auto meant = nearest(word, known);
  return meant ? fmt::format("; did you mean {}?", *meant) : "";
}

std::string Place::to_string() const { return fmt::format("{}:{}:{}", file, line, column); }

NamePattern::NamePattern(std::string text, Place place) : text_(std::move(text)), place_(std::move(place)) {
  const bool is_regular = text_.starts_with("re:");
  if (!is_regular && text_.find_first_of("*?") == std::string::npos) return;
  RE2::Options options(RE2::Latin1);  // names are bytes
  options.set_log_errors(false);
  options.set_dot_nl(!is_regular);
  expression_ = std::make_shared<const RE2>(is_regular ? text_.substr(3) : expression_of(text_), options);
  if (!expression_->ok()) {
    throw Error(fmt::format("{}: `{}` is no regular expression: {}", place_.to_string(), text_, expression_->error()));
  }
}

bool NamePattern::matches(const std::string& name) const {
  return expression_ ? RE2::FullMatch(name, *expression_) : name == text_;
}

std::string NamePattern::renamed(const std::string& name, const std::string& to) const {
  if (!expression_) return to;
  // $0 to $9 is all that can be asked for, and RE2's time grows with the groups that it has to tell of.
  constexpr int most = 10;
  std::vector<re2::StringPiece> groups(
      static_cast<std::size_t>(std::min(expression_->NumberOfCapturingGroups() + 1, most)));
  if (!expression_->Match(name, 0, name.size(), RE2::ANCHOR_BOTH, groups.data(), static_cast<int>(groups.size()))) {
    return name;
  }
  std::string result;
  for (std::size_t i = 0; i < to.size(); ++i) {
    const char next = to[i] == '$' && i + 1 < to.size() ? to[i + 1] : '\0';
    if (next >= '0' && next <= '9') {
      const auto group = static_cast<std::size_t>(next - '0');
      if (group < groups.size()) result += groups[group].as_string();
      ++i;
    } else {
      result += to[i];
      if (next == '$') ++i;
    }
  }
  return result;
}

bool RuleValue::is_expression() const {
  const auto* text = std::get_if<std::string>(&data);
  return text != nullptr && text->find('@') != std::string::npos;
}

std::string RuleValue::to_string() const {
  return std::visit(
      [](const auto& value) {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>) {
          return fmt::format("\"{}\"", value);
        } else if constexpr (std::is_same_v<std::decay_t<decltype(value)>, double>) {
          return fmt::format("{}", static_cast<float>(value));  // attributes are f32; 1e-05 is what was written
        } else if constexpr (fmt::is_formattable<std::decay_t<decltype(value)>>::value) {
          return fmt::format("{}", value);
        } else {
          return fmt::format("[{}]", fmt::join(value, ", "));
        }
      },
      data);
}

RuleValue evaluate(const RuleValue& expression,
                   const std::function<std::optional<RuleValue::Data>(const std::string&)>& value_of) {
  if (!expression.is_expression()) return expression;
  return {expression.place, Expression(std::get<std::string>(expression.data), expression.place, value_of).run()};
}

std::optional<AttributeValue> to_attribute(const RuleValue& value, AttributeType type) {
  const auto* integer = std::get_if<std::int64_t>(&value.data);
  const auto* number = std::get_if<double>(&value.data);
  const auto* integers = std::get_if<std::vector<std::int64_t>>(&value.data);
  const auto* numbers = std::get_if<std::vector<double>>(&value.data);
  switch (type) {
    case AttributeType::float_number:
      if (integer != nullptr) return static_cast<float>(*integer);
      if (number != nullptr) return static_cast<float>(*number);
      if (numbers != nullptr && numbers->size() == 1) return static_cast<float>(numbers->front());
      return std::nullopt;
    case AttributeType::integer:
      if (integer != nullptr) return *integer;
      if (integers != nullptr && integers->size() == 1) return integers->front();
      return std::nullopt;
    case AttributeType::text: {
      const auto* text = std::get_if<std::string>(&value.data);
      return text == nullptr ? std::nullopt : std::optional<AttributeValue>(*text);
    }
    case AttributeType::float_numbers:
      if (integer != nullptr) return std::vector{static_cast<float>(*integer)};
      if (number != nullptr) return std::vector{static_cast<float>(*number)};
      if (integers != nullptr) return std::vector<float>(integers->begin(), integers->end());
      if (numbers != nullptr) return std::vector<float>(numbers->begin(), numbers->end());
      return std::nullopt;
    case AttributeType::integers:
      if (integer != nullptr) return std::vector{*integer};
      return integers == nullptr ? std::nullopt : std::optional<AttributeValue>(*integers);
  }
  return std::nullopt;
}

AttributeValue to_attribute(const RuleValue& value) {
  for (const AttributeType type : {AttributeType::integer, AttributeType::integers, AttributeType::text}) {
    const bool is_list = type == AttributeType::integers && std::holds_alternative<std::int64_t>(value.data);
    if (const auto result = to_attribute(value, type); result && !is_list) return *result;
  }
  if (const auto number = to_attribute(value, AttributeType::float_number);
      number && std::holds_alternative<double>(value.data)) {
    return *number;
  }
  if (const auto numbers = to_attribute(value, AttributeType::float_numbers)) return *numbers;
  throw Error(fmt::format("{}: a list of texts, which no operator takes", value.place.to_string()));
}

std::string RuleOperator::to_string() const {
  if (is_plugin) {
    return fmt::format("the plugin {} version {}{}", op_type, plugin_version,
                       plugin_namespace.empty() ? "" : " of " + plugin_namespace);
  }
  return domain.empty() ? op_type : domain + "::" + op_type;
}

std::vector<Rule> parse_rules(const std::string& text, const std::string& name) { return Reader(name).read(text); }

std::vector<Rule> read_rules(const std::filesystem::path& path) {
  return parse_rules(std::string(MappedFile::open(path, most_bytes)->view()), path.string());
}

Dim parse_dim(const std::string& text, const Place& place) {
  if (const auto size = to_integer(text)) {
    if (*size < 1) throw Error(fmt::format("{}: a size of {}; 1 is the least", place.to_string(), *size));
    return *size;
  }
  const bool is_name = std::all_of(text.begin(), text.end(),
                                   [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; });
  if (!is_name || text.empty()) {
    throw Error(fmt::format("{}: '{}' is neither a size nor the name of a dimension", place.to_string(), text));
  }
  return Dim::symbol(text);
}

std::map<std::string, Shape, std::less<>> shapes_of(const std::vector<Rule>& rules) {
  std::map<std::string, Shape, std::less<>> result;
  for (const Rule& rule : rules) {
    if (rule.kind != Rule::Kind::shape) continue;
    for (const Rule::Entry& entry : rule.entries) {
      if (!entry.name.is_exact()) continue;
      Shape shape;
      for (const std::string& dim : std::get<std::vector<std::string>>(entry.value.data)) {
        shape.push_back(parse_dim(dim, entry.value.place));
      }
      result[entry.name.text()] = std::move(shape);
    }
  }
  return result;
}

}  // namespace graft

// Compares a node with the registered creators in the order in which TensorRT's parser searches them.
#include "inspect/plugin_causes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <filesystem>
#include <string_view>

#include "core/suggest.hpp"
#include "graft/report/inspect.hpp"
#include "graft/setting.hpp"
#include "inspect/tensorrt_support.hpp"
#include "onnx/node_ref.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/standard_operators.hpp"
#include "onnx/text.hpp"

namespace graft::inspect {
namespace {

using nlohmann::json;

constexpr std::string_view version_attribute = "plugin_version";
constexpr std::string_view namespace_attribute = "plugin_namespace";

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// Returns the position of `word` in `text` where no letter, digit or underscore precedes or follows it, or npos.
std::size_t find_word(std::string_view text, std::string_view word) {
  const auto lengthens = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !lengthens(text[at - 1])) && (end == text.size() || !lengthens(text[end]))) return at;
  }
  return std::string_view::npos;
}

std::string text_of(const json& object, const char* name) { return object.value(name, ""); }

/// Returns the value of the attribute `name`, or nothing if it is absent or not a string.
std::optional<std::string> given_text(const onnx::Node& node, std::string_view name) {
  const onnx::NodeAttribute* attribute = node.attribute(name);
  const auto* text = attribute == nullptr ? nullptr : attribute->get<std::string>();
  return text == nullptr ? std::nullopt : std::optional(*text);
}

std::string namespace_text(std::string_view text) {
  return text.empty() ? "the empty namespace" : fmt::format("'{}'", text);
}

std::vector<const json*> creators_named(const json& creators, std::string_view name) {
  std::vector<const json*> found;
  for (const json& creator : creators) {
    if (text_of(creator, "name") == name) found.push_back(&creator);
  }
  return found;
}

template <class Text>
std::string joined(const std::vector<const json*>& creators, Text text) {
  std::vector<std::string> parts;
  for (const json* creator : creators) {
    std::string part = text(*creator);
    if (std::find(parts.begin(), parts.end(), part) == parts.end()) parts.push_back(std::move(part));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string listed(const std::vector<const json*>& creators) { return joined(creators, describe_creator); }

MeantPlugin plugin_of(const json& creator) {
  return {
      .name = text_of(creator, "name"), .version = text_of(creator, "version"), .space = text_of(creator, "namespace")};
}

/// Returns the distinct values of the field `field` in the creators as text, such as "'1'" or "'1', '2' or '3'".
std::string one_of(const std::vector<const json*>& creators, const char* field) {
  std::vector<std::string> strings;
  for (const json* creator : creators) {
    std::string text = fmt::format("'{}'", text_of(*creator, field));
    if (std::find(strings.begin(), strings.end(), text) == strings.end()) strings.push_back(std::move(text));
  }
  if (strings.size() == 1) return strings.front();
  const std::string last = strings.back();
  strings.pop_back();
  return fmt::format("{} or {}", fmt::join(strings, ", "), last);
}

std::string name_the_library(std::string_view too) {
  return fmt::format(
      "if a library has the plugin{}, load it: {} LIB.so, or {} for your own operators; `graft plugins LIB.so` lists "
      "the plugins of a library",
      too, setting_name(Setting::plugin_libraries), setting_name(Setting::operator_libraries));
}

/// Returns whether any of the creators comes from a loaded library and not from TensorRT itself.
bool is_any_of_library(const json& creators) {
  return std::any_of(creators.begin(), creators.end(),
                     [](const json& creator) { return !text_of(creator, "library").empty(); });
}

PluginCause unknown_name(const onnx::Node& node, const json& creators) {
  if (onnx::is_of_onnxruntime(node)) {
    return {"onnxruntime_operator",
            fmt::format("{} is an operator of ONNX Runtime, which TensorRT does not have", node.op_type),
            advice_on_onnxruntime(node)};
  }
  const auto standard = onnx::standard_operator_meant(node);
  std::vector<std::string> names;
  if (standard) names.push_back(*standard);
  for (const json& creator : creators) names.push_back(text_of(creator, "name"));
  if (const auto meant = nearest(node.op_type, names)) {
    const std::string advice = fmt::format("if you mean {0}, set the node's operator type to {0}", *meant);
    const std::vector<const json*> named = creators_named(creators, *meant);
    if (named.empty()) {
      return {"operator_name",
              fmt::format("no plugin is registered under the name {}; the nearest is ONNX's operator {}", node.op_type,
                          *meant),
              advice + (node.domain.empty() ? "" : " and remove its domain")};
    }
    return {"plugin_name",
            fmt::format("no plugin is registered under the name {}; the nearest is {}", node.op_type, listed(named)),
            advice, plugin_of(*named.back())};
  }
  if (!is_any_of_library(creators)) {
    return {report::library_missing,
            fmt::format("no plugin is registered under the name {}: no plugin library was loaded", node.op_type),
            name_the_library("")};
  }
  std::vector<const json*> loaded;
  for (const json& creator : creators) {
    if (!text_of(creator, "library").empty()) loaded.push_back(&creator);
  }
  return {report::library_missing,
          fmt::format("no plugin is registered under the name {}, nor a similar one; loaded: {}", node.op_type,
                      joined(loaded, [](const json& c) { return text_of(c, "library"); })),
          name_the_library(" too")};
}

PluginCause wrong_version(const onnx::Node& node, const std::vector<const json*>& same_name) {
  const auto text = given_text(node, version_attribute);
  const std::string asked = text ? fmt::format("the node has plugin_version = '{}'", *text)
                                 : "the node has no plugin_version, which means '1'";
  return {"plugin_version", fmt::format("{}; registered: {}", asked, listed(same_name)),
          fmt::format("set the node's string attribute plugin_version to {}", one_of(same_name, "version")),
          plugin_of(*same_name.back())};
}

PluginCause wrong_namespace(const onnx::Node& node, const std::vector<const json*>& fitting) {
  const std::string spaces = joined(fitting, [](const json& c) { return namespace_text(text_of(c, "namespace")); });
  const std::string given = given_text(node, namespace_attribute).value_or("");
  std::string looked = given.empty() ? "the empty namespace, as the node has no plugin_namespace"
                                     : fmt::format("the node's plugin_namespace '{}'", given);
  looked += node.domain.empty() ? ", and nowhere else, as it has no domain"
                                : fmt::format(", and its domain '{}'", node.domain);
  return {
      given.empty() ? "domain" : "plugin_namespace",
      fmt::format("TensorRT searched {}; registered: {}", looked, listed(fitting)),
      fmt::format("set the node's attribute plugin_namespace{} to {}", given.empty() ? ", or its domain," : "", spaces),
      plugin_of(*fitting.back())};
}

/// Returns the cause if the attribute plugin_version or plugin_namespace exists and is not a string, so that the parser
/// ignores it; otherwise nothing.
std::optional<PluginCause> attribute_of_wrong_type(const onnx::Node& node) {
  for (const std::string_view name : {version_attribute, namespace_attribute}) {
    const onnx::NodeAttribute* attribute = node.attribute(name);
    if (attribute == nullptr || attribute->get<std::string>() != nullptr) continue;
    return PluginCause{std::string(name),
                       fmt::format("attribute `{}` has the type {}; it must be a string", name, attribute->kind()),
                       fmt::format("write {} as a string: '1' and not 1", name)};
  }
  return std::nullopt;
}

/// Returns the group of a plugin field type: "text", "number", "integer", or "" for any. The parser converts attributes
/// between the types of a group.
std::string_view family_of_field(std::string_view type) {
  if (type == "char") return "text";
  if (type == "dims" || type == "unknown") return "";
  return contains(type, "float") || type == "bf16" ? "number" : "integer";
}

std::string_view family_of_attribute(std::string_view kind) {
  if (kind == "string" || kind == "strings") return "text";
  if (kind == "int" || kind == "ints") return "integer";
  return kind == "float" || kind == "floats" ? "number" : "";
}

struct FieldReport {
  std::vector<std::string> given;  // fields that the node has with a type that fits
  std::vector<std::string> unknown;
  std::vector<std::string> ill_typed;
  std::vector<std::string> of_wrong_type;  // the names of the ill-typed fields
  std::vector<std::string> missing;        // fields that the node does not have, each with its type
  std::vector<std::string> absent;         // the names of the missing fields
  std::vector<std::string> hints;
  std::string type_hint;  // advice on the first ill-typed attribute
};

std::string type_hint_for(std::string_view wanted) {
  if (wanted == "text") return "write the attribute as a string: '2' and not 2";
  if (wanted == "number") return "write the attribute as a float: 2.0 and not 2 or '2.0'";
  return "write the attribute as an integer, an int or ints: 2 and not 2.0 or '2'";
}

FieldReport compare_fields(const onnx::Node& node, const json& creator) {
  FieldReport report;
  for (const json& field : creator["fields"]) {
    const std::string name = text_of(field, "name");
    const std::string type = text_of(field, "type");
    const onnx::NodeAttribute* attribute = node.attribute(name);
    if (attribute == nullptr) {
      report.absent.push_back(name);
      report.missing.push_back(fmt::format("{} ({})", name, type));
      continue;
    }
    const std::string_view wanted = family_of_field(type);
    const std::string_view given = family_of_attribute(attribute->kind());
    if (wanted.empty() || given.empty() || wanted == given) {
      report.given.push_back(name);
      continue;
    }
    report.of_wrong_type.push_back(name);
    if (report.type_hint.empty()) report.type_hint = type_hint_for(wanted);
    report.ill_typed.push_back(fmt::format("{} is {}, and the plugin expects {}", name, attribute->kind(), type));
  }
  for (const auto& attribute : node.attributes) {
    const std::string& name = attribute.first;  // clang 14 cannot capture a structured binding in a lambda
    if (name == version_attribute || name == namespace_attribute) continue;
    const bool known = std::any_of(creator["fields"].begin(), creator["fields"].end(),
                                   [&](const json& field) { return text_of(field, "name") == name; });
    if (known) continue;
    report.unknown.push_back(name);
    if (const auto meant = nearest(name, report.absent)) report.hints.push_back(fmt::format("{} for {}", *meant, name));
  }
  return report;
}

/// The most likely error in the attributes of a node that made a creator refuse it. A field that the plugin names in
/// its output counts most; a missing or unknown field is weak evidence, because many fields have a default.
enum class FieldFault : std::uint8_t { type, value, missing, name };

FieldFault fault_of(const FieldReport& fields, const std::string& printed) {
  std::size_t first = std::string::npos;
  FieldFault named = FieldFault::value;
  const auto look_for = [&](const std::vector<std::string>& names, FieldFault fault) {
    for (const std::string& name : names) {
      const std::size_t at = find_word(printed, name);
      if (at < first) named = fault;
      first = std::min(first, at);
    }
  };
  look_for(fields.of_wrong_type, FieldFault::type);
  look_for(fields.given, FieldFault::value);
  look_for(fields.unknown, FieldFault::name);
  look_for(fields.absent, fields.hints.empty() ? FieldFault::missing : FieldFault::name);
  if (first != std::string::npos) return named;
  if (!fields.ill_typed.empty()) return FieldFault::type;
  if (!fields.unknown.empty() && (!fields.hints.empty() || printed.empty()) && !fields.missing.empty()) {
    return FieldFault::name;
  }
  return printed.empty() && !fields.missing.empty() ? FieldFault::missing : FieldFault::value;
}

std::string unknown_text(const FieldReport& fields) {
  return fmt::format("has no field {}, so TensorRT did not pass it", fmt::join(fields.unknown, ", "));
}

PluginCause missing_field(const FieldReport& fields, const std::string& who, const std::string& printed) {
  std::vector<std::string> named;
  for (std::size_t i = 0; i < fields.absent.size(); ++i) {
    if (find_word(printed, fields.absent[i]) != std::string::npos) named.push_back(fields.missing[i]);
  }
  if (named.empty()) named = fields.missing;
  return {"field_missing",
          fmt::format("{} refused the node, which does not set {}{}", who, fmt::join(named, ", "),
                      named.size() > 1 ? "; TensorRT does not report which of them it requires" : ""),
          "add the attribute that the plugin requires to the node"};
}

PluginCause fault_in_fields(const FieldReport& fields, const std::string& who, const std::string& printed) {
  const std::string missing = fmt::format("{}", fmt::join(fields.missing, ", "));
  switch (fault_of(fields, printed)) {
    case FieldFault::type:
      return {"field_type", fmt::format("{}: {}", who, fmt::join(fields.ill_typed, "; ")), fields.type_hint};
    case FieldFault::missing: return missing_field(fields, who, printed);
    case FieldFault::name:
      return {"plugin_field",
              fmt::format("{} {}{}", who, unknown_text(fields),
                          fields.missing.empty() ? "" : "; the node does not set its fields " + missing),
              fields.hints.empty() ? "use the plugin's field names for the node's attributes"
                                   : fmt::format("did you mean {}?", fmt::join(fields.hints, ", "))};
    case FieldFault::value: break;
  }
  return {"field_value", fmt::format("{} refused the values of the node's attributes", who),
          printed.empty() ? "see the plugin's documentation for the allowed values"
                          : "see the plugin's output for the reason"};
}

/// Returns the cause if the creator was found but returned no plugin. `printed` is what the plugin printed.
PluginCause refused_by_creator(const onnx::Node& node, const json& creator, const std::string& printed) {
  const FieldReport fields = compare_fields(node, creator);
  PluginCause cause = fault_in_fields(fields, describe_creator(creator), printed);
  if (!printed.empty()) cause.reason += fmt::format("; it printed: {}", printed);
  if (cause.cause != "plugin_field" && !fields.unknown.empty()) {
    cause.reason += fmt::format("; it {}", unknown_text(fields));
  }
  return cause;
}

/// Returns the number and types of a node's inputs as text, such as "3 inputs (f32, f32, i64)".
std::string inputs_text(const onnx::Node& node) {
  std::vector<std::string> types;
  for (const onnx::Value* input : node.inputs) {
    types.emplace_back(input == nullptr ? "none" : !input->type ? "?" : std::string(to_string(*input->type)));
  }
  return fmt::format("{} input{} ({})", types.size(), types.size() == 1 ? "" : "s", fmt::join(types, ", "));
}

PluginCause of_the_older_generation(const json& creator) {
  return {
      "plugin_generation",
      fmt::format("{} is a plugin of generation {}, which the installed release of TensorRT does not support",
                  describe_creator(creator), text_of(creator, "generation")),
      "use a version of the library with IPluginV3 plugins, or a release of TensorRT that supports IPluginV2 (10.x)"};
}

/// Returns the types and shapes of tensors as text, such as "f32[1, 3, 8, 8], i64[2]".
std::string tensors_text(const std::vector<onnx::Value*>& values) {
  std::vector<std::string> strings;
  for (const onnx::Value* value : values) {
    if (value != nullptr) strings.push_back(type_text(*value));
  }
  return fmt::format("{}", fmt::join(strings, ", "));
}

}  // namespace

std::optional<PluginCause> failed_look_up(const onnx::Node& node, const json& creators) {
  const std::vector<const json*> same_name = creators_named(creators, node.op_type);
  if (same_name.empty()) return unknown_name(node, creators);
  if (auto wrong = attribute_of_wrong_type(node)) {
    wrong->meant = plugin_of(*same_name.back());
    return wrong;
  }
  const std::string version = given_text(node, version_attribute).value_or("1");
  std::vector<const json*> fitting;
  for (const json* creator : same_name) {
    if (text_of(*creator, "version") == version) fitting.push_back(creator);
  }
  if (fitting.empty()) return wrong_version(node, same_name);
  if (creator_of(node, creators) == nullptr) return wrong_namespace(node, fitting);
  return std::nullopt;
}

PluginCause cause_of_crash(const json& creator) {
  return {"plugin_crash", fmt::format("{}, crashes TensorRT's process", describe_creator(creator)),
          fmt::format("the library's author has to fix this; {} FILE writes the smallest model that fails",
                      setting_name(Setting::reduce))};
}

PluginCause cause_of_hang(const json& creator) {
  return {"plugin_hang", fmt::format("{}, does not return when TensorRT calls it", describe_creator(creator)),
          fmt::format("the library's author has to fix this; {} FILE writes the smallest model that fails. If the "
                      "plugin is only slow, raise {}",
                      setting_name(Setting::reduce), setting_name(Setting::trial_seconds))};
}

PluginCause cause_of_failed_build(const onnx::Node& node, const json& creator, const std::string& words) {
  if (contains(words, "Failed to find any supported plugin")) {
    return {"plugin_formats",
            fmt::format("{}, supports no combination of types and layouts that TensorRT offers: inputs {}; outputs {}",
                        describe_creator(creator), tensors_text(node.inputs), tensors_text(node.outputs)),
            "cast the node's inputs to types that the plugin supports; or let the plugin's supportsFormatCombination "
            "accept these types, at least in the linear layout"};
  }
  return {"plugin_build", fmt::format("{}, fails while the engine is built", describe_creator(creator)),
          "see TensorRT's messages or the plugin's output for the reason"};
}

PluginCause cause_in_body(const onnx::Node& outer, const json& creator, const std::string& words) {
  const std::string place = fmt::format("{} of {}", outer.is("If") ? "a branch" : "the body", onnx::describe(outer));
  const bool has_sizes_from_data = contains(words, "Data-dependent shapes are only allowed in the top-level scope");
  return {"plugin_in_body",
          has_sizes_from_data
              ? fmt::format("{}, computes sizes from data, which TensorRT builds only in the main graph, and not in {}",
                            describe_creator(creator), place)
              : fmt::format("{}, builds in the main graph, but not in {}", describe_creator(creator), place),
          advice_on_plugin_in_body()};
}

std::optional<PluginCause> taken_for_onnx(const onnx::Node& node, const json& creators) {
  if (onnx::is_standard_operator(node.domain, node.op_type) || !onnx::is_standard_operator("", node.op_type))
    return std::nullopt;
  const std::vector<const json*> same_name = creators_named(creators, node.op_type);
  std::string advice =
      same_name.empty() && onnx::is_of_onnxruntime(node) ? advice_on_onnxruntime(node)
      : same_name.empty() && !is_any_of_library(creators)
          ? fmt::format(
                "remove the domain of the node if you mean ONNX's {}, which may compute something else; otherwise "
                "rename the operator to a name that ONNX does not have",
                node.op_type)
          : fmt::format(
                "register the plugin under a name that ONNX does not have; or register it in the empty "
                "namespace, and let it override ONNX with {}",
                setting_name(Setting::plugin_override));
  return PluginCause{
      "override",
      fmt::format("TensorRT's parser parses the node as ONNX's {}, although its domain is '{}'{}", node.op_type,
                  node.domain, same_name.empty() ? "" : fmt::format(", and not as {}", listed(same_name))),
      std::move(advice)};
}

std::string describe_creator(const json& creator) {
  const std::string space = text_of(creator, "namespace");
  const std::string library = text_of(creator, "library");
  return fmt::format("{} {}{}{}", text_of(creator, "name"), text_of(creator, "version"),
                     space.empty() ? "" : fmt::format(" of namespace {}", space),
                     library.empty() ? ", TensorRT's own"
                                     : fmt::format(", from {}", std::filesystem::path(library).filename().string()));
}

const json* creator_of(const onnx::Node& node, const json& creators) {
  const std::string version = given_text(node, version_attribute).value_or("1");
  const std::string space = given_text(node, namespace_attribute).value_or("");
  for (const std::string& wanted : {space, node.domain}) {
    for (const json* creator : creators_named(creators, node.op_type)) {
      if (text_of(*creator, "version") == version && text_of(*creator, "namespace") == wanted) return creator;
    }
  }
  return nullptr;
}

std::optional<PluginCause> cause_of_refusal(const onnx::Node& node, const json& error, const json& creators,
                                            const std::string& printed) {
  const std::string message = text_of(error, "message");
  const std::string function = text_of(error, "function");
  if (contains(message, "Plugin not found")) {
    // The name is that of the operator, so the rules and the conversion know what is missing.
    const bool is_named_right = onnx::is_standard_operator(node.domain, node.op_type);
    if (is_named_right && creators_named(creators, node.op_type).empty()) return std::nullopt;
    return failed_look_up(node, creators);
  }
  const json* creator = creator_of(node, creators);
  if (onnx::is_standard_operator("", node.op_type) && !creators_named(creators, node.op_type).empty() &&
      contains(function, "check")) {
    const std::vector<const json*> same_name = creators_named(creators, node.op_type);
    const bool unnamed =
        std::any_of(same_name.begin(), same_name.end(), [](const json* c) { return text_of(*c, "namespace").empty(); });
    return PluginCause{
        "override",
        fmt::format("{} is registered, but the parser matches the name only: {} is an operator of ONNX, which it "
                    "refuses before it searches for a plugin",
                    listed(same_name), node.op_type),
        unnamed
            ? fmt::format("{} lets plugins override ONNX (OnnxParserFlag.ENABLE_PLUGIN_OVERRIDE of TensorRT 10.15 and "
                          "RTX 1.7); or register the plugin under a name that ONNX does not have",
                          setting_name(Setting::plugin_override))
            : fmt::format("register the plugin under a name that ONNX does not have; or in the empty namespace, the "
                          "only one that {} searches",
                          setting_name(Setting::plugin_override))};
  }
  if (creator == nullptr) return taken_for_onnx(node, creators);
  if (text_of(*creator, "generation") == "V2") return of_the_older_generation(*creator);
  if (contains(message, "Could not create the plugin")) return refused_by_creator(node, *creator, printed);
  if (contains(message, "more output tensors than TRT expected")) {
    return PluginCause{"plugin_outputs",
                       fmt::format("{}, has fewer outputs than the node, which has {}", describe_creator(*creator),
                                   node.outputs.size()),
                       "change the node so that it has as many outputs as the plugin"};
  }
  constexpr std::array at_inputs{"getOutputDataTypes", "output shape computation", "getOutputShapes"};
  if (std::any_of(at_inputs.begin(), at_inputs.end(), [&](const char* word) { return contains(message, word); })) {
    return PluginCause{
        "plugin_inputs",
        fmt::format("{} refuses the inputs of the node: {}", describe_creator(*creator), inputs_text(node)),
        "change the node's inputs to the number, types and ranks that the plugin accepts"};
  }
  return std::nullopt;
}

std::optional<PluginCause> wrong_fields(const onnx::Node& node, const json& creator) {
  const FieldReport fields = compare_fields(node, creator);
  if (!fields.ill_typed.empty()) {
    return PluginCause{"field_type",
                       fmt::format("{}; TensorRT passes the value unchanged, and the plugin may read a different value",
                                   fmt::join(fields.ill_typed, "; ")),
                       fields.type_hint};
  }
  if (!fields.unknown.empty()) {
    return PluginCause{
        "plugin_field",
        fmt::format("the plugin has no field {}, so TensorRT does not pass it", fmt::join(fields.unknown, ", ")),
        fields.hints.empty() ? "remove the attribute, or rename it to a field of the plugin"
                             : fmt::format("did you mean {}?", fmt::join(fields.hints, ", "))};
  }
  return std::nullopt;
}

}  // namespace graft::inspect

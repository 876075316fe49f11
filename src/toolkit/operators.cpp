// Collects the facts about operators from their definitions, and loads libraries of operators.
#include "graft/toolkit/operators.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>
#include <utility>

#include "core/plugin_form.hpp"
#include "core/remove_operators.hpp"
#include "core/suggest.hpp"
#include "graft/error.hpp"
#include "graft/operator/input_order.hpp"
#include "graft/operator/registry.hpp"
#include "graft/setting.hpp"
#include "import/caffe/import.hpp"
#include "import/tensorflow/import.hpp"
#include "onnx/functions.hpp"
#include "onnx/operator_bodies.hpp"
#include "operator_library/load.hpp"
#include "rules/library_fusions.hpp"

namespace graft::toolkit {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::vector<std::string> strings_of(const std::vector<std::string_view>& texts) { return {texts.begin(), texts.end()}; }

/// Returns the allowed values of an attribute: its choices or its range.
std::string allowed_text(const AttributeInfo& info) {
  return info.choices.empty() ? info.range.to_string() : fmt::format("{}", fmt::join(info.choices, ", "));
}

report::StandIn facts_of(const DropIn& drop_in, const OperatorType& type) {
  report::StandIn facts{.name = std::string(drop_in.plugin_name),
                        .version = std::string(drop_in.version),
                        .inputs = {},
                        .input_order = {},
                        .plugin_fields = {},
                        .doc = std::string(drop_in.doc),
                        .is_creator = can_stand_in(drop_in.plugin_name)};
  if (!drop_in.inputs.empty()) facts.input_order = InputOrder::of(type, &drop_in).to_string(type);
  for (const std::string_view input : drop_in.inputs) {
    facts.inputs.push_back(input.empty() ? std::nullopt : std::optional<std::string>(input));
  }
  for (std::size_t i = 0; drop_in.inputs.empty() && i < type.input_count(); ++i) {
    facts.inputs.emplace_back(type.ports[i].name);
  }
  for (const DropInField& field : drop_in.fields) {
    facts.plugin_fields.push_back({std::string(field.name), std::string(field.attribute), std::string(field.doc)});
  }
  return facts;
}

OperatorFacts facts_of(const OperatorType& type) {
  OperatorFacts facts;
  facts.name = type.name;
  facts.version = type.version;
  facts.domain = onnx_domain;
  if (const OperatorLibrary* library = library_of(type)) facts.library = library->file;
  facts.doc = type.doc;
  facts.source = type.source;
  facts.why_plugin = type.why_plugin;
  for (const AttributeInfo& info : type.attributes) {
    facts.attributes.push_back({.name = std::string(info.name),
                                .type = info.type,
                                .required = info.required,
                                .default_value = info.required ? std::nullopt : std::optional(info.default_value),
                                .default_text = info.required ? "" : graft::to_string(info.default_value),
                                .allowed = allowed_text(info),
                                .doc = std::string(info.doc)});
  }
  for (const graft::Port& port : type.ports) {
    facts.ports.push_back({.name = std::string(port.name),
                           .is_output = port.is_output(),
                           .is_optional = port.is_optional(),
                           .is_variadic = port.is_variadic(),
                           .is_shape = port.is_shape(),
                           .is_size = port.is_size(),
                           .shape = std::string(port.shape),
                           .doc = std::string(port.doc)});
  }
  for (const TypeRow& row : type.type_rows) {
    std::vector<report::TensorFormat>& formats = facts.type_rows.emplace_back();
    for (std::size_t i = 0; i < row.count; ++i) formats.push_back({row.formats[i].dtype, row.formats[i].layout});
  }
  for (const DropIn& drop_in : type.drop_ins) facts.drop_ins.push_back(facts_of(drop_in, type));
  if (type.onnx_form) {
    facts.onnx_name = type.onnx_form->name;
    facts.onnx_inputs = strings_of(type.onnx_form->inputs);
  }
  if (type.takes_onnx_nodes()) {
    facts.onnx_plugin = {.needs_override = type.onnx_form->needs_override,
                         .needs_attributes = strings_of(type.onnx_form->changed_defaults)};
  }
  for (auto& [name, body] : onnx::function_bodies(type)) facts.functions.push_back({name, std::move(body)});
  facts.native_form = onnx::native_form_of(
      *type.create(), {.dtype = DType::f32, .count = type.required_input_count(), .rank = onnx::usual_rank});
  return facts;
}

const OperatorType& find_type(const std::string& name) {
  std::vector<std::string> known;
  for (const OperatorType* type : operators()) {
    known.emplace_back(type->name);
    if (lower(std::string(type->name)) == lower(name)) return *type;
    for (const DropIn& drop_in : type->drop_ins) {
      known.emplace_back(drop_in.plugin_name);
      if (lower(std::string(drop_in.plugin_name)) == lower(name)) return *type;
    }
  }
  const auto meant = nearest(name, known);
  throw Error(fmt::format(
      "graft ops: no operator or plugin is called {}\n{} To find an operator of your own, load its library with {}",
      name, meant ? fmt::format("Did you mean {}?", *meant) : "`graft ops` lists all operators.",
      setting_name(Setting::operator_libraries)));
}

}  // namespace

std::vector<std::string> load_operators(const std::filesystem::path& library) {
  const std::string file = library.string();
  const OperatorLibrary& loaded = load_operator_library(file);
  try {
    static_cast<void>(rules::library_fusions(loaded));
    for (const OperatorType* type : loaded.operators) onnx::check_bodies(*type);
  } catch (...) {
    remove_operator_library(loaded.file);  // otherwise each later conversion would read the invalid fusions
    throw;
  }
  std::vector<std::string> names;
  for (const OperatorType* type : loaded.operators) names.emplace_back(type->name);
  return names;
}

std::vector<OperatorFacts> operator_facts() {
  std::vector<OperatorFacts> facts;
  for (const OperatorType* type : operators()) facts.push_back(facts_of(*type));
  return facts;
}

OperatorFacts operator_facts(const std::string& name) { return facts_of(find_type(name)); }

std::vector<CaffeLayer> caffe_layers() { return graft::caffe_layers(); }

std::vector<TensorFlowOperator> tensorflow_operators() { return graft::tensorflow_operators(); }

std::vector<LoadedLibrary> loaded_libraries() {
  std::vector<LoadedLibrary> libraries;
  for (const OperatorLibrary& library : operator_libraries()) {
    LoadedLibrary& loaded = libraries.emplace_back();
    loaded.file = library.file;
    loaded.plugin_namespace = library.plugin_namespace;
    for (const OperatorType* type : library.operators) loaded.operators.emplace_back(type->name);
    loaded.has_plugins = has_plugins(library);
  }
  return libraries;
}

}  // namespace graft::toolkit

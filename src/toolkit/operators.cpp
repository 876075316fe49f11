// Collects the facts about operators from their definitions, and loads libraries of operators.
#include "toolkit/operators.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "core/remove_operators.hpp"
#include "core/suggest.hpp"
#include "graft/error.hpp"
#include "graft/setting.hpp"
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

std::vector<OperatorFacts::Function> functions_of(const OperatorType& type) {
  std::vector<OperatorFacts::Function> functions;
  for (auto& [name, body] : onnx::function_bodies(type)) functions.push_back({name, std::move(body)});
  return functions;
}

OperatorFacts facts_of(const OperatorType& type) {
  const OperatorLibrary* library = library_of(type);
  return {.type = &type,
          .library = library == nullptr ? std::string() : library->file,
          .functions = functions_of(type),
          .native_form = onnx::native_form_of(
              *type.create(), {.dtype = DType::f32, .count = type.required_input_count(), .rank = onnx::usual_rank})};
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
  throw Error(fmt::format("graft ops: no operator or plugin is called {}\n{} An operator of your own is found with {}",
                          name, meant ? fmt::format("Did you mean {}?", *meant) : "`graft ops` lists them all.",
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

}  // namespace graft::toolkit

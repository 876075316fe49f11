// From the definitions of the operators.
#include "toolkit/operators.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <memory>
#include <utility>

#include "core/suggest.hpp"
#include "graft/error.hpp"
#include "operator_library/load.hpp"
#include "passes/library_fusions.hpp"

namespace graft::toolkit {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

constexpr int usual_rank = 4;  // N,C,H,W, where a body depends on the rank

/// All bodies that a function can have: one for each combination of what an attribute chooses between.
std::vector<std::unique_ptr<Operator>> with_every_choice(const OperatorType& type) {
  constexpr double few = 8;
  std::vector<std::unique_ptr<Operator>> all;
  all.push_back(type.create());
  for (const AttributeInfo& info : type.attributes) {
    std::vector<AttributeValue> values;
    for (const std::string_view choice : info.choices) values.emplace_back(std::string(choice));
    if (info.type == AttributeType::integer && info.range.highest - info.range.lowest < few) {
      for (auto v = static_cast<std::int64_t>(info.range.lowest); v <= static_cast<std::int64_t>(info.range.highest);
           ++v) {
        values.emplace_back(v);
      }
    }
    if (values.empty()) continue;
    std::vector<std::unique_ptr<Operator>> next;
    for (const auto& op : all) {
      for (const AttributeValue& value : values) {
        auto changed = op->clone();
        if (changed->set(info.name, value).ok()) next.push_back(std::move(changed));
      }
    }
    all = std::move(next);
  }
  return all;
}

std::vector<OperatorFacts::Function> functions_of(const OperatorType& type) {
  std::map<std::string, std::string> bodies;
  const std::size_t most = std::min(type.input_count() + 1, type.most_inputs());  // of variadic inputs two
  for (const auto& op : with_every_choice(type)) {
    for (const TypeRow& row : type.type_rows) {
      for (std::size_t count = type.required_input_count(); count <= most; ++count) {
        const FunctionInputs inputs{.dtype = row.formats[0].dtype, .count = count, .rank = usual_rank};
        if (auto function = op->function(inputs)) bodies.emplace(function->name, function->body);
      }
    }
  }
  std::vector<OperatorFacts::Function> functions;
  for (auto& [name, body] : bodies) functions.push_back({name, std::move(body)});
  return functions;
}

OperatorFacts facts_of(const OperatorType& type) {
  const OperatorLibrary* library = library_of(type);
  return {.type = &type,
          .library = library == nullptr ? std::string() : library->file,
          .functions = functions_of(type),
          .native_form = type.create()->native_form(
              {.dtype = DType::f32, .count = type.required_input_count(), .rank = usual_rank})};
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
  throw Error(fmt::format("graft ops: no operator or plugin is called {}\n{}", name,
                          meant ? fmt::format("Did you mean {}?", *meant) : "`graft ops` lists them all"));
}

}  // namespace

std::vector<std::string> load_operators(const std::filesystem::path& library) {
  const std::string file = library.string();
  const OperatorLibrary& loaded = load_operator_library(file);
  static_cast<void>(passes::library_fusions(loaded));  // throws for one that cannot be read
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

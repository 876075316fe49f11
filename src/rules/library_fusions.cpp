// Reads the fusions of a library of operators. The pass that applies them is in replacements.cpp.
#include "rules/library_fusions.hpp"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "graft/error.hpp"
#include "graft/setting.hpp"

namespace graft::rules {
namespace {

/// Returns whether a file of rules holds nothing, or only comments.
bool is_empty(const char* text) {
  try {
    return YAML::Load(text).IsNull();
  } catch (const YAML::Exception&) {
    return false;  // parse_rules reports the error and its place
  }
}

void check(const Rule& rule, const OperatorLibrary& library) {
  if (rule.kind != Rule::Kind::match)
    fail_at(rule.place, fmt::format("a fusion of a library must be a rule `match`; use other rules with {}",
                                    setting_name(Setting::rules)));
  if (rule.changes_result || !rule.prove || rule.optional || rule.stage != Rule::Stage::before || rule.int8) {
    fail_at(rule.place,
            "a fusion of a library is always proven and always optional; allowed are match, with, inputs, outputs, "
            "attributes and reason");
  }
  const auto& own = library.operators;
  if (rule.with.graft != nullptr && std::find(own.begin(), own.end(), rule.with.graft) != own.end()) return;
  fail_at(rule.place, fmt::format("`with` is {}, which is not an operator of this library", rule.with.to_string()));
}

}  // namespace

std::vector<Rule> library_fusions(const OperatorLibrary& library) {
  std::vector<Rule> all;
  for (const FusionRules& file : library.fusions) {
    try {
      if (is_empty(file.text)) {
        throw Error(
            fmt::format("{}: the file has no fusion; write one, as in\n- match: y = Mul(x, Sigmoid(x))\n  with: {}\nor "
                        "remove the file",
                        file.file, library.operators.empty() ? "Operator" : library.operators.front()->name));
      }
      for (Rule& rule : parse_rules(file.text, file.file)) {
        check(rule, library);
        all.push_back(std::move(rule));
      }
    } catch (const Error& error) {
      throw Error(fmt::format("library of operators {}: {}", library.file, error.what()));
    }
  }
  return all;
}

}  // namespace graft::rules

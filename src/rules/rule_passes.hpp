// The passes that apply rules, each with its place in the pipeline.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "passes/passes.hpp"
#include "rules/rule.hpp"

namespace graft::rules {

/// The user's rules as a conversion needs them.
struct RulePasses {
  /// The passes that apply the rules, one for each stage. They run once, whatever the options leave out.
  /// RewriteReport::rules holds the reason why a rule was not applied.
  std::vector<passes::Pass> passes;
  /// The shapes that rules of the kind `shape` set for exact names, for readers that need shapes while they read.
  std::map<std::string, Shape, std::less<>> input_shapes;
};
[[nodiscard]] RulePasses rule_passes(std::vector<Rule> rules);
/// Reads a file of rules. Throws the errors of read_rules.
[[nodiscard]] RulePasses rule_passes(const std::filesystem::path& file);

/// Returns the pass that applies the fusions of the loaded libraries of operators.
[[nodiscard]] passes::Pass library_fusion_pass();

}  // namespace graft::rules

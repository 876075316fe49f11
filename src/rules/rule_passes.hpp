// The passes that apply rules, each with its place in the pipeline.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "passes/passes.hpp"
#include "rules/rule.hpp"

namespace graft::rules {

/// A file of rules, converted to passes for ConvertOptions::extra_passes and shapes for the readers.
struct RulePasses {
  /// The passes that apply the rules: one for the rules on inputs and outputs, one for replacements before Graft's
  /// fusions, and one for replacements after them. Each runs once, even if ConvertOptions::only or
  /// ConvertOptions::without excludes it. For a rule that was not applied, RewriteReport::rules contains the reason.
  std::vector<passes::Pass> passes;
  /// The shapes that rules `shape` set for exactly named inputs, for readers that need the input shapes.
  std::map<std::string, Shape, std::less<>> input_shapes;
};
[[nodiscard]] RulePasses rule_passes(std::vector<Rule> rules);
/// Reads a file of rules. Throws the same errors as read_rules.
[[nodiscard]] RulePasses rule_passes(const std::filesystem::path& file);

/// Returns the pass that applies the fusions of the loaded libraries of operators.
[[nodiscard]] passes::Pass library_fusion_pass();

}  // namespace graft::rules

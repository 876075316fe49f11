// The passes that apply rules, each with its place in the pipeline.
#pragma once

#include <vector>

#include "passes/passes.hpp"
#include "passes/report.hpp"
#include "passes/rewriter.hpp"
#include "rules/rule.hpp"

namespace graft::rules {

using passes::Proposal;
using passes::Rewriter;
using report::RuleOutcome;

/// Returns the passes that apply the user's rules, one for each stage. They run once, whatever the options leave out.
/// RewriteReport::rules holds the reason why a rule was not applied.
[[nodiscard]] std::vector<passes::Pass> rule_passes(std::vector<Rule> rules);

/// Returns the pass that applies the fusions of the loaded libraries of operators.
[[nodiscard]] passes::Pass library_fusion_pass();

/// Returns the outcome of a rule that was not applied yet.
[[nodiscard]] inline RuleOutcome begin_outcome(const Rule& rule) {
  return {.place = rule.place.to_string(),
          .rule = rule.text,
          .reason = rule.reason,
          .optional = rule.optional,
          .notes = {}};
}

// Each of these functions is the work of one pass.
void apply_interface_rules(Rewriter& rewriter, const std::vector<Rule>& rules);
void apply_replacements(Rewriter& rewriter, const std::vector<Rule>& rules, Rule::Stage stage);
void fuse_library_operators(Rewriter& rewriter);

}  // namespace graft::rules

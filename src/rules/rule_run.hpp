// Records what a rule did to a network: the changes that it made, the rewrites whose proof failed, and the names that
// matched nothing. `--explain` prints these notes.
#pragma once

#include <string>
#include <vector>

#include "passes/rewriter.hpp"
#include "rules/matching.hpp"
#include "rules/rule.hpp"

namespace graft::rules {

using passes::Proposal;
using passes::Rewriter;

/// A rule that is being applied to a model, with the outcome so far for the report.
struct RuleRun {
  RuleRun(Rewriter& rewriter, const Rule& rule);
  [[nodiscard]] onnx::Graph& graph() const { return rewriter.model().graph(); }

  Rewriter& rewriter;
  const Rule& rule;
  report::RuleOutcome outcome;
};

/// Returns the reason for rewrites of a rule: "requested by rules.yaml:3:5: <reason of the rule>".
[[nodiscard]] std::string request_text(const Rule& rule);

/// Counts a match to which the rule was applied, and adds to the report that `subject` became `replacement`. Meant for
/// changes after which the remaining nodes are the same, such as a new name or a new input shape, so that no proof is
/// needed.
void record_change(RuleRun& run, Rewriter::Subject subject, std::string replacement);
/// Counts a match to which the rule was not applied, and adds `note`, the reason, to the outcome.
void record_miss(RuleRun& run, std::string note);
/// Counts a match to which the rule was not applied, with the note that no tensor in `among` has the name. `what` is
/// "tensor", "input" or "output".
void record_missing_tensor(RuleRun& run, const NamePattern& name, const char* what,
                           const std::vector<onnx::Value*>& among);

/// Returns the groups of nodes that the rule's selector selects, and sets the number of matches. If it selects none,
/// adds notes on the nodes that were nearest to a match.
[[nodiscard]] std::vector<Region> select_regions(RuleRun& run);
/// Returns a proposal to replace the nodes of `region`. `replacement` describes the new nodes in the report. The caller
/// must set `edit` and `inputs`.
[[nodiscard]] Proposal propose(const Rule& rule, const Region& region, std::string replacement);
/// Proves and applies a proposal for the nodes of `region`, and counts the match. If the proof fails, adds the reason
/// to the notes of the outcome.
void apply(RuleRun& run, const Region& region, const Proposal& proposal);

}  // namespace graft::rules

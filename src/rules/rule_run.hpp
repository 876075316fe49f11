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

/// A rule while it is applied to a model, and its outcome so far.
struct RuleRun {
  RuleRun(Rewriter& rewriter, const Rule& rule);
  [[nodiscard]] onnx::Graph& graph() const { return rewriter.model().graph(); }

  Rewriter& rewriter;
  const Rule& rule;
  report::RuleOutcome outcome;
};

/// Returns "requested by rules.yaml:3:5: its reason".
[[nodiscard]] std::string request_text(const Rule& rule);

/// Counts and records a change that needs no proof.
void record_change(RuleRun& run, Rewriter::Subject subject, std::string replacement);
/// Counts a place at which the rule was not applied, and notes why.
void record_miss(RuleRun& run, std::string note);
/// Notes that none of these tensors has the name. `what` is "tensor", "input" or "output".
void record_missing_tensor(RuleRun& run, const NamePattern& name, const char* what,
                           const std::vector<onnx::Value*>& among);

/// Selects the nodes of the rule, counts them and, if there are none, notes which came nearest.
[[nodiscard]] std::vector<Region> select_regions(RuleRun& run);
/// Returns a proposal for a change of the region, without its edit and inputs.
[[nodiscard]] Proposal propose(const Rule& rule, const Region& region, std::string replacement);
/// Proves and applies a proposal. Notes why if its proof fails.
void apply(RuleRun& run, const Region& region, const Proposal& proposal);

}  // namespace graft::rules

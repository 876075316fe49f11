// Functions that evaluate the report of a conversion.
#pragma once

#include <string>
#include <vector>

#include "graft/report/rewrites.hpp"

namespace graft::passes {

using report::NearMiss;
using report::OperatorChoice;
using report::PassSummary;
using report::Plugins;
using report::ProofKind;
using report::Quantized;
using report::Rewrite;
using report::RewriteReport;
using report::RuleOutcome;

/// Returns whether near miss `a` should be reported before `b`. Patterns of loaded operator libraries come first, then
/// the patterns with the larger fraction of matched nodes.
[[nodiscard]] bool is_nearer(const NearMiss& a, const NearMiss& b);

/// Returns one line for each kind of rejected rewrite, with the first affected node and the cause. Rewrites requested
/// by the user's rules are left out, because RuleOutcome reports them.
[[nodiscard]] std::vector<std::string> rejection_warnings(const RewriteReport& report);

}  // namespace graft::passes

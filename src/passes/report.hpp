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

/// Returns whether `a` is more useful than `b` to a user who wants to know why nothing was rewritten: near misses of
/// patterns of the user's own libraries come first; among other patterns, a larger matched share comes first.
[[nodiscard]] bool is_nearer(const NearMiss& a, const NearMiss& b);

/// Returns a line for each kind of rejected rewrite, with the first place and its cause. Rewrites that the user's rules
/// request are left out, because RuleOutcome reports them.
[[nodiscard]] std::vector<std::string> rejection_warnings(const RewriteReport& report);

}  // namespace graft::passes

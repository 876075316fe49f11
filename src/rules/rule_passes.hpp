// The passes that apply rules, each with its place in the pipeline.
#pragma once

#include <vector>

#include "passes/passes.hpp"
#include "rules/rule.hpp"

namespace graft::rules {

/// Returns the passes that apply the user's rules, one for each stage. They run once, whatever the options leave out.
/// RewriteReport::rules holds the reason why a rule was not applied.
[[nodiscard]] std::vector<passes::Pass> rule_passes(std::vector<Rule> rules);

/// Returns the pass that applies the fusions of the loaded libraries of operators.
[[nodiscard]] passes::Pass library_fusion_pass();

}  // namespace graft::rules

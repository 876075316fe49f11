// Replaces an If node whose condition is constant by the nodes of the branch that runs.
#pragma once

namespace graft::passes {

class Rewriter;

/// Replaces every If with a constant condition, in all graphs, by the nodes of the branch that runs, and returns
/// whether there was any. The caller must infer shapes again.
bool inline_constant_branches(Rewriter& rewriter);

}  // namespace graft::passes

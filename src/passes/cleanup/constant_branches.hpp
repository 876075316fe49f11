// Replaces an If node whose condition is constant by the nodes of the branch that runs.
#pragma once

namespace graft::passes {

class Rewriter;

/// Inlines every If node whose condition is constant, and returns whether there was any. Does not infer shapes again.
bool inline_constant_branches(Rewriter& rewriter);

}  // namespace graft::passes

// If nodes whose condition is a constant: the branch that is taken stands in their place.
#pragma once

namespace graft::passes {

class Rewriter;

/// Whether there was any. Shapes are not inferred again.
bool inline_constant_branches(Rewriter& rewriter);

}  // namespace graft::passes

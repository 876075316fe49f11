// The pass that lets nodes follow a batch which the inputs declare dynamic.
#pragma once

#include "passes/rewriter.hpp"

namespace graft::passes {

void unfreeze_batch(Rewriter& rewriter);

}  // namespace graft::passes

// Corrects the advice on nodes by what is known of the whole model.
#pragma once

#include <vector>

#include "inspect/verdicts.hpp"
#include "passes/report.hpp"

namespace graft::inspect {

/// Completes the advice on nodes that `graft convert` does not rewrite. Where a lowering was tried on the node, the
/// clause on `graft convert` becomes the condition that the node does not meet, followed by what the user can do. Where
/// none was tried, the general advice to run `graft convert` is replaced by other advice. `near_misses` are the near
/// misses of the conversion of the same model.
void note_obstacles(std::vector<NodeSupport>& nodes, const std::vector<report::NearMiss>& near_misses);

/// Returns whether the advice on a node names the cut, which leaves the node to the host.
[[nodiscard]] bool advises_cut(const std::vector<NodeSupport>& nodes);

/// Removes the clauses that name the cut from all advice, for a network of which no cut leaves TensorRT anything.
void withdraw_cut(std::vector<NodeSupport>& nodes);

}  // namespace graft::inspect

// Corrects the advice on nodes by what is known of the whole model.
#pragma once

#include <vector>

#include "inspect/verdicts.hpp"
#include "passes/report.hpp"

namespace graft::inspect {

/// Replaces the general advice to run `graft convert` by the reason for which it does not rewrite the node and by what
/// is left to do, or by other advice where no lowering was tried on the node. In other advice, the clause on what
/// `graft convert` does is replaced by that reason where a lowering was tried.
/// `near_misses` are those of the conversion of the same model.
void note_obstacles(std::vector<NodeSupport>& nodes, const std::vector<report::NearMiss>& near_misses);

/// Whether the advice on a node names the cut, which leaves the node to the host.
[[nodiscard]] bool advises_cut(const std::vector<NodeSupport>& nodes);

/// Removes the clauses that name the cut from all advice, for a network of which no cut leaves TensorRT anything.
void withdraw_cut(std::vector<NodeSupport>& nodes);

}  // namespace graft::inspect

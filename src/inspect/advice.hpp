// Corrects the advice on nodes by what is known of the whole model.
#pragma once

#include <vector>

#include "inspect/verdicts.hpp"
#include "passes/report.hpp"

namespace graft::inspect {

/// Changes the advice on nodes that TensorRT does not run and `graft convert` does not rewrite. For a node in
/// `near_misses`, which the conversion tried to rewrite, the clause about `graft convert` is replaced by the condition
/// that the node does not fulfill, followed by what the user can do. For any other node, the general advice to run
/// `graft convert` is replaced by the advice to write an operator. `near_misses` must come from the conversion of the
/// same model.
void note_obstacles(std::vector<NodeSupport>& nodes, const std::vector<report::NearMiss>& near_misses);

/// Returns whether the advice on any node names Setting::cut, the setting that cuts the network so that the host runs
/// the node.
[[nodiscard]] bool advises_cut(const std::vector<NodeSupport>& nodes);

/// Removes the clauses that name Setting::cut from all advice, for a network in which every cut would leave no work for
/// TensorRT.
void withdraw_cut(std::vector<NodeSupport>& nodes);

}  // namespace graft::inspect

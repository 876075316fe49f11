// Verdicts on nodes in groups of which one thing is said.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "inspect/verdicts.hpp"

namespace graft::inspect {

/// Returns whether there is nothing to say of a node: a Constant is a part of the nodes that read it.
[[nodiscard]] bool is_mere_constant(const NodeVerdict& node);

/// Returns whether a node does not run, may not run, or runs as a plugin that is given wrong values.
[[nodiscard]] bool is_problem(const NodeVerdict& node);

/// Nodes of which one thing is said.
struct VerdictGroup {
  std::vector<const NodeVerdict*> nodes;

  [[nodiscard]] const NodeVerdict& first() const { return *nodes.front(); }
};

struct VerdictGroups {
  std::vector<VerdictGroup> problems;  ///< The worst first, of those the largest.
  std::vector<VerdictGroup> others;    ///< There is a reason to tell; the largest first.
  std::vector<VerdictGroup> plain;     ///< There is no reason to tell.
};

/// Groups problems by operator, and the rest by reason. With `every_node` each node is a group, in the model's order
/// where the verdicts are the same. `nodes` has to outlive the groups.
[[nodiscard]] VerdictGroups group_verdicts(const std::vector<NodeVerdict>& nodes, bool every_node);

/// Returns the operators of a group with the number of their nodes, the most frequent first.
[[nodiscard]] std::vector<std::pair<std::string, std::size_t>> count_operators(const VerdictGroup& group);

/// Returns how many different reasons the nodes of a group have.
[[nodiscard]] std::size_t count_reasons(const VerdictGroup& group);

}  // namespace graft::inspect

// Groups the verdicts that are reported together.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "graft/report/inspect.hpp"

namespace graft::report {

/// Returns whether a node is a Constant that runs natively. Reports do not list such nodes, because they belong to the
/// nodes that read them.
[[nodiscard]] bool is_mere_constant(const NodeSupport& node);

/// Returns whether a node does not run, may not run, or runs with a known problem (NodeSupport::cause).
[[nodiscard]] bool is_problem(const NodeSupport& node);

/// Nodes that are reported together.
struct VerdictGroup {
  std::vector<const NodeSupport*> nodes;

  [[nodiscard]] const NodeSupport& first() const { return *nodes.front(); }
};

struct VerdictGroups {
  std::vector<VerdictGroup> problems;  ///< The worst verdict first; for equal verdicts, the largest group first.
  std::vector<VerdictGroup> others;    ///< Groups with a reason; the largest first.
  std::vector<VerdictGroup> plain;     ///< Groups without a reason.
};

/// Groups problems by operator, and the other nodes by reason. With `every_node` each node is a group, in the order of
/// the model for equal verdicts. `nodes` must outlive the groups.
[[nodiscard]] VerdictGroups group_verdicts(const std::vector<NodeSupport>& nodes, bool every_node);

/// Returns the operators of a group with the number of their nodes, the most frequent first.
[[nodiscard]] std::vector<std::pair<std::string, std::size_t>> count_operators(const VerdictGroup& group);

/// Returns how many different reasons the nodes of a group have.
[[nodiscard]] std::size_t count_reasons(const VerdictGroup& group);

}  // namespace graft::report

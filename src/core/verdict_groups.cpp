// Nodes that were not probed because they lie after one that does not run are one group, whatever their operators.
#include "core/verdict_groups.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

namespace graft::report {
namespace {

/// Groups problems by operator and other nodes by reason; with `every_node` each node is a group.
std::vector<VerdictGroup> grouped(const std::vector<NodeSupport>& nodes, bool every_node) {
  std::vector<VerdictGroup> groups;
  std::map<std::tuple<Support, std::string, std::string>, std::size_t> index;
  for (const NodeSupport& node : nodes) {
    if (is_mere_constant(node)) continue;
    const bool is_behind = node.support == Support::not_asked;
    const auto key = std::tuple(node.support, is_problem(node) ? (is_behind ? "-" : node.op) : "",
                                is_problem(node) ? "" : node.reason);
    const auto [found, is_new] = index.emplace(key, groups.size());
    if (is_new || every_node) {
      groups.push_back({{&node}});
    } else {
      groups[found->second].nodes.push_back(&node);
    }
  }
  return groups;
}

/// Sorts groups from the largest to the smallest.
void sort_by_size(std::vector<VerdictGroup>& groups) {
  std::stable_sort(groups.begin(), groups.end(),
                   [](const VerdictGroup& a, const VerdictGroup& b) { return a.nodes.size() > b.nodes.size(); });
}

}  // namespace

bool is_mere_constant(const NodeSupport& node) { return node.op == "Constant" && node.support == Support::native; }

bool is_problem(const NodeSupport& node) {
  return is_bad(node.support) || is_open(node.support) || !node.cause.empty();
}

VerdictGroups group_verdicts(const std::vector<NodeSupport>& nodes, bool every_node) {
  VerdictGroups groups;
  for (VerdictGroup& group : grouped(nodes, every_node)) {
    const NodeSupport& first = group.first();
    auto& list = is_problem(first) ? groups.problems : first.reason.empty() ? groups.plain : groups.others;
    list.push_back(std::move(group));
  }
  if (!every_node) {
    sort_by_size(groups.problems);
    sort_by_size(groups.others);
  }
  std::stable_sort(groups.problems.begin(), groups.problems.end(),
                   [](const VerdictGroup& a, const VerdictGroup& b) { return a.first().support > b.first().support; });
  return groups;
}

std::vector<std::pair<std::string, std::size_t>> count_operators(const VerdictGroup& group) {
  std::vector<std::pair<std::string, std::size_t>> counts;
  for (const NodeSupport* node : group.nodes) {
    const auto same = std::find_if(counts.begin(), counts.end(), [&](const auto& c) { return c.first == node->op; });
    if (same == counts.end()) {
      counts.emplace_back(node->op, 1);
    } else {
      ++same->second;
    }
  }
  std::stable_sort(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return counts;
}

std::size_t count_reasons(const VerdictGroup& group) {
  std::set<std::string_view> reasons;
  for (const NodeSupport* node : group.nodes) reasons.insert(node->reason);
  return reasons.size();
}

}  // namespace graft::report

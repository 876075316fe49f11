// Copies the finding on a node to the nodes that are alike, most of which are not probed.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "inspect/alike_nodes.hpp"
#include "inspect/model_parts.hpp"
#include "inspect/tensorrt_probe.hpp"
#include "inspect/tensorrt_support.hpp"

namespace graft::inspect {

std::vector<Finding> TensorRTProbe::refusals_alike(const Finding& finding) const {
  const onnx::Node& first = *finding.nodes.front();
  std::vector<Finding> findings;
  if (finding.inside != nullptr || !bad_.contains(&first)) return findings;
  const auto rule = rule_against(first);
  const auto wanted = likeness_of(first, can_be_input);
  for (const onnx::Node* node : left()) {
    if (node->op_type != first.op_type || node->domain != first.domain) continue;
    bool is_alike = rule && rule_against(*node) == rule;
    if (!is_alike && wanted) {
      const auto likeness = likeness_of(*node, can_be_input);
      is_alike = likeness && likeness->exact == wanted->exact;
    }
    if (!is_alike) continue;
    Finding& alike = findings.emplace_back(finding);
    alike.as = &first;
    alike.nodes = {node};
  }
  return findings;
}

void TensorRTProbe::add_with_alike(Finding found) {
  if (!fails_with_other_sizes(found)) return;
  for (Finding& finding : look_inside(std::move(found))) {
    add(finding);
    for (Finding& alike : findings_alike(finding)) add(std::move(alike));
  }
}

std::vector<Finding> TensorRTProbe::findings_alike(const Finding& finding) {
  std::vector<Finding> findings;
  if (finding.nodes.size() != 1 || finding.inside != nullptr) return findings;
  const onnx::Node& first = *finding.nodes.front();
  const auto wanted = likeness_of(first, can_be_input);
  if (!wanted) return findings;
  struct Asked {
    Finding finding;
    Likeness likeness;
  };
  std::vector<Asked> asked{{finding, *wanted}};
  // Where a rule explains the first failure, the rule also decides which of the other nodes fail.
  bool is_asking = true;
  for (const onnx::Node* node : left()) {
    auto likeness = node->op_type == first.op_type ? likeness_of(*node, can_be_input) : std::nullopt;
    if (!likeness || likeness->kind != wanted->kind) continue;
    const auto same = std::find_if(asked.begin(), asked.end(),
                                   [&](const Asked& each) { return each.likeness.exact == likeness->exact; });
    const Asked* as = same == asked.end() ? nullptr : &*same;
    if (as == nullptr && is_known_to_fail(first)) {
      if (!is_known_to_fail(*node)) continue;
      as = &asked.front();
    }
    if (as != nullptr) {
      Finding& alike = findings.emplace_back(as->finding);
      alike.as = as->finding.nodes.front();
      alike.nodes = {node};
      continue;
    }
    // Nodes of other sizes are probed one after the other until one of them builds: then the first failure was an
    // exception, and the remaining nodes are built together.
    if (!is_asking) continue;
    Trial trial = try_nodes(Judge::builder, {node});
    is_asking = fails(Judge::builder, trial);
    if (!is_asking) continue;
    Finding failing = finding_of({node}, trial);
    if (!fails_with_other_sizes(failing)) continue;
    asked.push_back({std::move(failing), std::move(*likeness)});
    findings.push_back(asked.back().finding);
  }
  return findings;
}

}  // namespace graft::inspect

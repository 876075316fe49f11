// The number of nodes with each verdict decides which steps are needed.
#include "inspect/next_steps.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "onnx/operator_node.hpp"

namespace graft::inspect {
namespace {

/// Adds one step `write` for an operator that has no implementation: of the operators that can be written from one of
/// their nodes (`can_define` returns true), the one with the most nodes. The command of this step is an example for the
/// other operators.
void add_operator_to_write(const std::vector<NodeSupport>& nodes, const CanDefine& can_define,
                           std::vector<NextStep>& steps) {
  std::map<std::string, NextStep> operators;
  std::map<std::string, std::size_t> to_define;  // the first node of an operator from which it can be written
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const bool is_missing = is_bad(nodes[i].support) && nodes[i].cause == report::library_missing;
    // `graft new` refuses the names of ONNX's operators, whatever the domain of the node.
    const NodeRef& node = nodes[i].node;
    const bool has_name_of_onnx = onnx::is_standard_operator("", node.op);
    if (!is_missing || has_name_of_onnx || onnx::is_standard_operator(node.domain, node.op)) continue;
    ++operators.try_emplace(nodes[i].op, NextStep{.kind = NextStep::Kind::write}).first->second.nodes;
    if (can_define == nullptr || can_define(node.name)) to_define.try_emplace(nodes[i].op, i);
  }
  std::erase_if(operators, [&](const auto& each) { return !to_define.contains(each.first); });
  for (auto& [op, step] : operators) step.first = to_define.at(op);
  const auto most = std::ranges::max_element(operators, {}, [](const auto& each) { return each.second.nodes; });
  if (most != operators.end()) steps.push_back(most->second);
}

}  // namespace

std::vector<NextStep> next_steps(const std::vector<NodeSupport>& nodes, bool is_converted, bool is_built,
                                 std::size_t fused, const CanDefine& can_define) {
  const auto count = [&](auto&& fits) {
    return static_cast<std::size_t>(std::count_if(nodes.begin(), nodes.end(), fits));
  };
  const auto has_fault = [](const NodeSupport& node) { return is_bad(node.support) && node.advice == advice_on_fault; };
  const std::size_t faults = count(has_fault);
  const auto is_for_host = [&](const NodeSupport& node) { return is_bad(node.support) && !has_fault(node); };
  const std::size_t bad = count(is_for_host);
  const std::size_t open = count([](const NodeSupport& node) { return node.support == Support::unknown; });
  const std::size_t rewritten = is_converted ? 0 : count([](const NodeSupport& node) {
    // `graft build` itself replaces operators of ONNX with plugins.
    const bool is_of_onnx = onnx::is_standard_operator("", node.op);
    return node.support == Support::lowered || (node.support == Support::plugin && !is_of_onnx);
  });
  const std::size_t dangers = count(is_computed_wrongly);
  if (faults != 0) return {{.kind = NextStep::Kind::correct, .nodes = faults}};
  std::vector<NextStep> steps;
  if (open != 0) steps.push_back({.kind = NextStep::Kind::probe, .nodes = open});
  if (bad != 0) {
    const std::size_t wrong =
        count([&](const NodeSupport& node) { return is_for_host(node) && is_computed_wrongly(node); });
    // An operator of the user's own belongs in the engine, so writing it comes before leaving it to the host.
    add_operator_to_write(nodes, can_define, steps);
    steps.push_back({.kind = NextStep::Kind::cut, .nodes = bad, .wrong = wrong});
  } else if (dangers != 0) {
    steps.push_back({.kind = NextStep::Kind::guard, .nodes = dangers});
  } else if (rewritten != 0 && !is_built) {
    steps.push_back({.kind = NextStep::Kind::convert, .nodes = rewritten});
  } else if (open == 0 && !nodes.empty()) {
    if (fused != 0 && !is_converted) steps.push_back({.kind = NextStep::Kind::fuse, .nodes = fused});
    steps.push_back({.kind = NextStep::Kind::build, .nodes = nodes.size()});
  }
  return steps;
}

}  // namespace graft::inspect

// Replaces an If node whose condition is constant by the nodes of the branch that runs.
//
//   before                                    after
//   y = If<then = {a = Neg(x)},               a = Neg(x)
//          else = {b = Squeeze(x)}>(true)
//
// Exporters write such nodes where the condition depends on a shape. The shape of the result of an If is unknown while
// both branches are present.
#include "passes/cleanup/constant_branches.hpp"

#include <fmt/format.h>

#include <string_view>

#include "onnx/branches.hpp"
#include "onnx/model.hpp"
#include "passes/cleanup/inline_branch.hpp"
#include "passes/rewriter.hpp"

namespace graft::passes {
namespace {

/// Returns the name of the attribute ("then_branch" or "else_branch") with the branch that an If always runs, or an
/// empty string if its condition is not constant.
std::string_view constant_branch(const onnx::Node& node) {
  if (!node.is("If") || node.input(0) == nullptr) return "";
  const auto constant = node.input(0)->constant();
  return onnx::taken_branch(constant ? constant->numbers() : std::nullopt);
}

/// Inlines the first If with a constant condition that is found in the graphs of the model, and returns whether there
/// was one. The caller repeats the call until it returns false, because inlining deletes sub-graphs and so ends the
/// iteration over the graphs.
bool inline_first(Rewriter& rewriter) {
  for (onnx::Graph* graph : rewriter.graphs()) {
    for (onnx::Node* node : graph->nodes()) {
      const std::string_view attribute = constant_branch(*node);
      const onnx::Graph* branch = onnx::subgraph(*node, attribute);
      if (branch == nullptr || branch->outputs().size() < node->outputs.size()) continue;
      rewriter.record({.nodes = {ref_of(*node)}}, fmt::format("the nodes of its {}", attribute),
                      "its condition is a constant", "by definition: the other branch never runs");
      inline_branch(*node, *branch);
      return true;
    }
  }
  return false;
}

}  // namespace

bool inline_constant_branches(Rewriter& rewriter) {
  bool inlined = false;
  while (inline_first(rewriter)) inlined = true;
  return inlined;
}

}  // namespace graft::passes

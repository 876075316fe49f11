// If nodes whose condition is a constant: the branch that is taken stands in their place.
//
//   before                                    after
//   y = If<then = {a = Neg(x)},               a = Neg(x)
//          else = {b = Squeeze(x)}>(true)
//
// Exporters write them where a shape decides. Behind such a node no shape is known as long as both branches are there.
#include "passes/constant_branches.hpp"

#include <fmt/format.h>

#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "onnx/branches.hpp"
#include "onnx/copy.hpp"
#include "onnx/model.hpp"
#include "passes/rewriter.hpp"

namespace graft::passes {
namespace {

/// The attribute with the branch that an If takes; empty where its condition is not a constant.
std::string_view constant_branch(const onnx::Node& node) {
  if (!node.is("If") || node.input(0) == nullptr) return "";
  const auto constant = node.input(0)->constant();
  return onnx::taken_branch(constant ? constant->numbers() : std::nullopt);
}

class BranchInliner {
 public:
  BranchInliner(onnx::Node& node, const onnx::Graph& branch) : node_(node), branch_(branch), graph_(*node.graph) {}

  void run() {
    for (const onnx::Node* inner : branch_.nodes()) {
      onnx::copy_node(*inner, graph_, [&](onnx::Value* value) { return look_up(value); });
    }
    for (std::size_t i = 0; i < node_.outputs.size(); ++i) {
      if (node_.outputs[i] != nullptr) graph_.replace_all_uses(*node_.outputs[i], *look_up(branch_.outputs()[i]));
    }
    graph_.remove_node(node_);
    // The names are free once the branch is gone.
    for (const auto& [value, name] : made_) {
      if (!value->is_output()) graph_.rename(*value, graph_.unique_name(name));
    }
    graph_.topological_sort();
  }

 private:
  /// What stands for a value of the branch; a value from around it stands for itself.
  onnx::Value* look_up(onnx::Value* value) {
    if (value->graph != &branch_) return value;
    if (const auto known = copies_.find(value); known != copies_.end()) return known->second;
    onnx::Value* copy =
        value->initializer ? graph_.add_constant(value->name, *value->initializer) : graph_.make_value(value->name);
    copy->type = value->type;
    copy->shape = value->shape;
    copies_.emplace(value, copy);
    made_.emplace_back(copy, value->name);
    return copy;
  }

  onnx::Node& node_;
  const onnx::Graph& branch_;
  onnx::Graph& graph_;
  std::unordered_map<const onnx::Value*, onnx::Value*> copies_;
  std::vector<std::pair<onnx::Value*, std::string>> made_;
};

/// One at a time: sub-graphs go with their node.
bool inline_first(Rewriter& rewriter) {
  for (onnx::Graph* graph : rewriter.graphs()) {
    for (onnx::Node* node : graph->nodes()) {
      const std::string_view attribute = constant_branch(*node);
      const onnx::Graph* branch = onnx::subgraph(*node, attribute);
      if (branch == nullptr || branch->outputs().size() < node->outputs.size()) continue;
      rewriter.record({.nodes = {ref_of(*node)}}, fmt::format("the nodes of its {}", attribute),
                      "its condition is a constant", "by definition: the other branch is never taken");
      BranchInliner(*node, *branch).run();
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

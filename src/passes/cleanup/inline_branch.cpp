// Copies the branch node by node. The copies of its values get their names after the branch, which holds the names, is
// removed.
#include "passes/cleanup/inline_branch.hpp"

#include <fmt/format.h>

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "onnx/copy.hpp"

namespace graft::passes {
namespace {

class BranchInliner {
 public:
  BranchInliner(onnx::Node& node, const onnx::Graph& branch) : node_(node), branch_(branch), graph_(*node.graph) {}

  void run() {
    std::unordered_set<std::string> taken;
    for (const onnx::Node* outer : graph_.nodes()) taken.insert(outer->name);
    for (const onnx::Node* inner : branch_.nodes()) {
      onnx::Node* copy = onnx::copy_node(*inner, graph_, [&](onnx::Value* value) { return look_up(value); });
      if (!copy->name.empty()) copy->name = free_name(copy->name, taken);
    }
    for (std::size_t i = 0; i < node_.outputs.size(); ++i) {
      if (node_.outputs[i] != nullptr) graph_.replace_all_uses(*node_.outputs[i], *look_up(branch_.outputs()[i]));
    }
    graph_.remove_node(node_);
    // The names are free after the branch is removed.
    for (const auto& [value, name] : made_) {
      if (!value->is_output()) graph_.rename(*value, graph_.unique_name(name));
    }
    graph_.topological_sort();
  }

 private:
  /// Returns the copy of a value of the branch; a value from outside the branch stands for itself.
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

  /// Returns the name, or one like it that no node has: ONNX Runtime refuses two nodes of one name.
  static std::string free_name(const std::string& name, std::unordered_set<std::string>& taken) {
    std::string result = name;
    for (int suffix = 1; !taken.insert(result).second; ++suffix) result = fmt::format("{}~{}", name, suffix);
    return result;
  }

  onnx::Node& node_;
  const onnx::Graph& branch_;
  onnx::Graph& graph_;
  std::unordered_map<const onnx::Value*, onnx::Value*> copies_;
  std::vector<std::pair<onnx::Value*, std::string>> made_;
};

}  // namespace

void inline_branch(onnx::Node& node, const onnx::Graph& branch) { BranchInliner(node, branch).run(); }

}  // namespace graft::passes

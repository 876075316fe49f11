// Finds the nodes to which a rule applies: single nodes, all nodes of a scope or of an imported layer, or the nodes of
// a pattern.
#pragma once

#include <string>
#include <vector>

#include "onnx/matcher.hpp"
#include "onnx/model.hpp"
#include "rules/rule.hpp"

namespace graft::rules {

/// The nodes that a rule replaces or changes together, in topological order, with their inputs and outputs.
struct Region {
  std::string name;  ///< The name for messages: "node 'conv1' (Conv)", "scope `a/b`, 6 nodes".
  onnx::Graph* graph = nullptr;
  std::vector<onnx::Node*> nodes;
  std::vector<onnx::Value*> inputs;    ///< The inputs except constants. For a single node: all inputs, null if absent.
  std::vector<onnx::Value*> outputs;   ///< The values that are used outside, or are outputs of the graph.
  bool is_group = false;               ///< Whether the region is a whole scope or layer.
  const onnx::Match* match = nullptr;  ///< The match of a rule's pattern; null for selected nodes.
};

/// Returns a Region of these nodes, with the inputs and outputs that they have together. `name` describes it in
/// messages.
[[nodiscard]] Region make_region(std::string name, std::vector<onnx::Node*> nodes);

/// Returns a Region of the nodes that a pattern matched. It refers to `match`, which must outlive it.
[[nodiscard]] Region region_of(const onnx::Match& match, onnx::Graph& graph);

struct Selection {
  std::vector<Region> regions;
  /// Notes for messages on the nodes that fulfilled most conditions of the selector, with the conditions that failed,
  /// or on similar names; empty if the selector selects any node.
  std::vector<std::string> nearest;
};

[[nodiscard]] Selection select(const Selector& selector, const std::vector<onnx::Graph*>& graphs);

/// Returns the tensors in `among` whose names match `name`.
[[nodiscard]] std::vector<onnx::Value*> find_tensors(const std::vector<onnx::Value*>& among, const NamePattern& name);
[[nodiscard]] std::vector<std::string> names_of(const std::vector<onnx::Value*>& values);

}  // namespace graft::rules

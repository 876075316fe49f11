// Selects the nodes of a user's rule: single nodes, or all nodes of a scope or of an imported layer.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/model.hpp"
#include "rules/rule.hpp"

namespace graft::rules {

/// Nodes that a rule treats as one, in topological order, with their inputs and outputs.
struct Region {
  std::string name;  ///< For messages: "node 'conv1' (Conv)", "scope `a/b`, 6 nodes".
  onnx::Graph* graph = nullptr;
  std::vector<onnx::Node*> nodes;
  std::vector<onnx::Value*> inputs;   ///< The inputs but constants; of a single node all, null for an absent one.
  std::vector<onnx::Value*> outputs;  ///< The values that are used outside, or are outputs of the graph.
  bool is_group = false;              ///< Whether the region is a whole scope or layer.
};

/// Returns the region of these nodes, with its inputs and outputs.
[[nodiscard]] Region make_region(std::string name, std::vector<onnx::Node*> nodes);

struct Selection {
  std::vector<Region> regions;
  std::vector<std::string> nearest;  ///< If there are no regions: the nearest nodes, and the conditions that failed.
};

[[nodiscard]] Selection select(const Selector& selector, const std::vector<onnx::Graph*>& graphs);

/// Returns the name of a node, or of its first output if the node has no name.
[[nodiscard]] std::string name_of(const onnx::Node& node);

/// Returns the value of an attribute, or ONNX's default if the attribute is not written. An attribute that is an input
/// in newer operator sets is read from that input. Returns nothing if the attribute is absent, or neither a number nor
/// a string.
[[nodiscard]] std::optional<RuleValue::Data> attribute_data(const onnx::Node& node, std::string_view name);
/// Returns the value of a constant: one value for a scalar, otherwise a list.
[[nodiscard]] std::optional<RuleValue::Data> constant_data(const onnx::TensorData& tensor);

}  // namespace graft::rules

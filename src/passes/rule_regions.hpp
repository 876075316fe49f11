// Finds what a rule of the user is about: nodes, or all nodes of a scope or of an imported layer.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/model.hpp"
#include "passes/rule_file.hpp"

namespace graft::passes {

/// Nodes that a rule takes together, in topological order, and what goes in and out.
struct Region {
  std::string name;  ///< For messages: "node 'conv1' (Conv)", "scope `a/b`, 6 nodes".
  onnx::Graph* graph = nullptr;
  std::vector<onnx::Node*> nodes;
  std::vector<onnx::Value*> inputs;   ///< No constants; of a single node all of them, null where one is absent.
  std::vector<onnx::Value*> outputs;  ///< What is used outside, or is an output of the graph.
  bool is_group = false;              ///< All nodes of a scope or a layer.
};

/// A region of these nodes; inputs and outputs follow.
[[nodiscard]] Region make_region(std::string name, std::vector<onnx::Node*> nodes);

struct Selection {
  std::vector<Region> regions;
  std::vector<std::string> nearest;  ///< Where there are none: the nodes that came nearest, and what they lack.
};

[[nodiscard]] Selection select(const Selector& selector, const std::vector<onnx::Graph*>& graphs);

/// The name of a node, or of its first output where it has none.
[[nodiscard]] std::string name_of(const onnx::Node& node);

/// The value of an attribute, ONNX's default where there is one and it is not written; also where a newer operator set
/// has made an input of it. Nothing where it is absent, or neither number nor text.
[[nodiscard]] std::optional<RuleValue::Data> attribute_data(const onnx::Node& node, std::string_view name);
/// The same of a constant: one number for a scalar, otherwise a list.
[[nodiscard]] std::optional<RuleValue::Data> constant_data(const onnx::TensorData& tensor);

}  // namespace graft::passes

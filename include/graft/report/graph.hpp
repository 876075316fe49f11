// The graph of a model, for programs that show or search it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "graft/node_ref.hpp"
#include "graft/report/node_cost.hpp"

namespace graft::report {

/// A value of a graph: a tensor, a sequence or an optional.
struct ModelValue {
  std::string name;             ///< Empty for an optional input or output that a node leaves out.
  std::string type;             ///< Type and shape: "f32[N, 10]"; '?' stands for unknown parts.
  bool is_initializer = false;  ///< Whether the model stores the value: a weight, or the default of an input.
};

struct ModelGraph;

/// A node of a graph.
struct ModelNode {
  NodeRef ref;
  /// The operator with its domain: "Conv", "graft::L2Normalize". A call of an operator's function has the operator's
  /// own name.
  std::string op;
  std::vector<ModelValue> inputs;
  std::vector<ModelValue> outputs;
  /// The name and the value of each attribute as strings, such as "pads" and "[1, 1]", in alphabetical order. Long
  /// values are shortened; attributes that are graphs are not included.
  std::vector<std::pair<std::string, std::string>> attributes;
  std::vector<ModelGraph> bodies;     ///< The graphs inside the node: the branches of If, the body of Loop.
  std::vector<std::string> captures;  ///< The values of the node's own graph that its bodies read.
  NodeCost cost = {};                 ///< The work and the memory of the node, without those of its bodies.
};

/// The main graph of a model, the body of a node, or the body of a function. Nodes are in topological order: each node
/// follows the nodes whose results it reads.
struct ModelGraph {
  std::vector<ModelValue> inputs;  ///< The inputs, including those with a default value, which are initializers.
  std::vector<ModelValue> outputs;
  std::vector<ModelNode> nodes;

  /// Calls `visit` with each node of the graph and, right after a node, with the nodes of its bodies.
  template <class Visit>
  void for_each_node(const Visit& visit) const {
    for (const ModelNode& node : nodes) {
      visit(node);
      for (const ModelGraph& body : node.bodies) body.for_each_node(visit);
    }
  }
};

/// A function that the model defines for its own nodes.
struct ModelFunction {
  std::string domain;
  std::string name;
  ModelGraph body;
};

}  // namespace graft::report

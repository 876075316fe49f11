// Replaces an If by the nodes of one of its branches, and a Loop or Scan by copies of its body.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "onnx/model.hpp"

namespace graft::passes {

/// Replaces an If by the nodes of one of its branches. The branch must have at least as many outputs as the If. Values
/// and nodes of the branch keep their names unless another value or node has the name.
void inline_branch(onnx::Node& node, const onnx::Graph& branch);

/// A set of all node names that are or were used in a graph, for choosing unique names.
class NodeNames {
 public:
  explicit NodeNames(const onnx::Graph& graph);
  /// Returns `name`, or `name` with a suffix if a node already has it, and adds the result to the set. ONNX Runtime
  /// refuses two nodes of the same name.
  std::string add(const std::string& name);

 private:
  std::unordered_map<std::string, std::size_t> taken_;  // the names, each with the last suffix that was tried
};

/// Replaces a node by one or more copies of its body. The values and nodes of the first copy keep their names if they
/// are unique in the graph; those of later copies get the suffixes ~1, ~2 ...
class BodyCopies {
 public:
  /// Selects whether the copied values have the shapes that the body declares.
  enum class Shapes {
    same,     ///< The copies have the shapes of the body.
    inferred  ///< The copies have no shapes that inference can find, as these may differ between copies.
  };

  /// Copies `body`, a body of `node`. `names` are the node names of the graph that contains `node`; the names of the
  /// copied nodes are added to it.
  BodyCopies(onnx::Node& node, const onnx::Graph& body, Shapes shapes, NodeNames& names);

  /// Adds a copy of the body to the graph around the node, and returns the outputs of the copy. `inputs` are the values
  /// that the copy reads in place of the inputs of the body.
  std::vector<onnx::Value*> add(const std::vector<onnx::Value*>& inputs);

  /// Removes the node, and replaces its output i by results[i], a value of the graph around the node. `results` may
  /// have more entries than the node has outputs.
  void finish(const std::vector<onnx::Value*>& results);

  /// Renames the copied values to the names that they have in the body, if those are free. finish() calls this. For a
  /// second BodyCopies of the same node, call it after finish() of the first has removed the node.
  void rename_values();

 private:
  onnx::Value* look_up(onnx::Value* value);

  onnx::Node& node_;
  const onnx::Graph& body_;
  onnx::Graph& graph_;
  Shapes shapes_;
  std::size_t copies_ = 0;
  NodeNames& names_;
  std::unordered_map<const onnx::Value*, onnx::Value*> constants_;  // which all copies share
  std::unordered_map<const onnx::Value*, onnx::Value*> values_;     // of the copy that is being added
  std::vector<std::pair<onnx::Value*, std::string>> made_;          // with the names that they should get
};

}  // namespace graft::passes

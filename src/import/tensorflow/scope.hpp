// Converts the nodes that become one ONNX graph: the whole network, a branch of an If, or the body of a loop.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "import/tensorflow/graph.hpp"
#include "import/tensorflow/import.hpp"
#include "import/tensorflow/node_converter.hpp"
#include "tensorflow/graph_def.pb.h"

namespace graft::tensorflow {

/// The nodes of the network, or of a function's body, by name.
struct NodeSet {
  std::unordered_map<std::string, NodeDef*> by_name;
  /// The Switches of each LoopCond of TensorFlow 1, which pass the loop's variables into its body.
  std::unordered_map<std::string, std::vector<const NodeDef*>> loop_switches;

  explicit NodeSet(GraphDef& graph);
};

/// Data that all scopes of a file share.
struct Reading {
  const TensorFlowOptions& options;
  const FunctionDefLibrary& library;
  /// The large tensors of the file, which were cut out before the file was parsed (onnx/wire.hpp).
  const onnx::Pieces& pieces;
  onnx::ContentsMap contents = {};
  /// The names of the nodes whose operator Graft does not read, by operator.
  std::map<std::string, std::vector<std::string>> unknown = {};
  /// Copies of the functions that are bodies of branches and loops.
  std::list<GraphDef> bodies = {};
  std::unordered_set<const NodeDef*> needed = {};  ///< The nodes of all scopes that the outputs depend on.
  report::Origin origin = {};
  std::size_t converted = 0;  ///< The number of nodes that have been converted.
  // Limits on the work for a file. They are needed because nested functions and loops could expand without end, and a
  // constant of one number can represent any size.
  std::size_t room_for_calls = std::size_t{4} << 20U;  ///< The remaining bytes for inlined functions.
  ConstantBudget constants = {};
  std::size_t room_for_searches = 1 << 20;  ///< The remaining nodes that searches for a Switch may visit.
  std::size_t room_for_plans = 1 << 16;     ///< The remaining nodes of all scopes together.
  /// The number of node conversions that are still allowed. The nodes of a loop's condition are converted twice.
  std::size_t room_for_conversions = 1 << 17;
};

class Scope;

/// Returns whether an operator passes its input on unchanged.
[[nodiscard]] bool is_identity(const NodeDef& node);

/// The loop `while cond(state): state = body(state)`, from a While node or from a frame of TensorFlow 1.
struct LoopPlan {
  /// The initial values of the loop variables: tensors of the scope around the loop.
  std::vector<TensorName> initial;
  /// Tensors of the scope around the loop that the loop reads without changing them.
  std::vector<TensorName> captures;
  std::unique_ptr<Scope> condition;
  std::unique_ptr<Scope> body;
};

struct BranchPlan {
  std::unique_ptr<Scope> when_true;
  std::unique_ptr<Scope> when_false;
};

/// The nodes of the network or of a function's body. They are first planned (which nodes are needed, in which order,
/// and whether Graft reads them) and then converted. The body of a loop may be converted more than once.
class Scope {
 public:
  /// Creates a scope that computes the tensors `results`. `arguments` maps each tensor whose value the caller of
  /// convert() supplies to its index in convert()'s `arguments`; `depth` is the number of enclosing scopes.
  Scope(Reading& reading, std::shared_ptr<const NodeSet> nodes, std::map<TensorName, std::size_t> arguments,
        std::vector<TensorName> results, int depth);

  void plan();
  /// Adds the nodes to `graph` and returns the results. For a loop of TensorFlow 1, `captured` contains the values of
  /// captures(). Elements of `arguments` that no node reads may be null.
  std::vector<onnx::Value*> convert(onnx::Graph& graph, const std::vector<onnx::Value*>& arguments,
                                    const std::map<TensorName, onnx::Value*>& captured = {});

  [[nodiscard]] const std::vector<TensorName>& results() const { return results_; }
  /// Returns the tensors of the enclosing scope that a loop of TensorFlow 1 reads without changing them.
  [[nodiscard]] const std::vector<TensorName>& captures() const { return captures_; }
  [[nodiscard]] const NodeDef* node_of(const TensorName& name) const;
  /// Returns the tensor that a chain of Identities copies, or the tensor itself.
  [[nodiscard]] TensorName source_of(TensorName name) const;
  [[nodiscard]] std::optional<std::size_t> argument(const TensorName& name) const;
  /// Returns the nodes that read an argument, directly or through Identities.
  [[nodiscard]] std::vector<const NodeDef*> readers_of_argument(std::size_t index) const;
  /// Returns the ONNX value of a tensor, or null if no node of this scope computes the tensor or if Graft does not
  /// convert this output of the node.
  [[nodiscard]] onnx::Value* try_value(const TensorName& name) const;
  /// Requests that convert() outputs a list element in place of `node`, an operator in a loop that sets or appends this
  /// element. `item` is the index of the element among the inputs of `node`.
  void give_item_of(const NodeDef& node, std::size_t item) { items_[&node] = item; }
  [[nodiscard]] onnx::Value* captured(const TensorName& name) const;

 private:
  struct Side {
    const NodeDef* split = nullptr;
    bool is_true = false;
  };

  NodeDef* find(const std::string& name) const;
  NodeDef& find(const std::string& name, const NodeDef& reader) const;
  std::optional<bool> constant_predicate(const TensorName& name, int depth = 0) const;
  bool is_of_loop(const NodeDef& node) const;
  std::optional<Side> side_of(const TensorName& name) const;
  std::optional<TensorName> arriving(const NodeDef& merge) const;
  std::vector<TensorName> merge_inputs(const NodeDef& merge) const;
  std::vector<TensorName> inputs_of(const NodeDef& node);
  void sort();
  void check_known();

  std::unique_ptr<Scope> function_body(const NodeDef& node, const std::string& attribute, std::size_t first_input);
  std::vector<TensorName> plan_branches(const NodeDef& node);
  std::vector<TensorName> plan_loop(const NodeDef& node);
  std::vector<TensorName> plan_frame(const NodeDef& loop_condition);
  [[nodiscard]] std::vector<TensorName> exit_of(const NodeDef& node) const;

  onnx::Value* value_of(const TensorName& name, const NodeDef& reader) const;
  /// Returns whether a node reads only the last element of its input along the first axis.
  [[nodiscard]] bool reads_last(const NodeDef& node) const;
  /// Records which elements of each tensor the nodes of the scope and its results read.
  void find_uses();
  void convert(NodeDef& node);
  void note_origin(const NodeDef& node, const std::vector<onnx::Value*>& inputs,
                   const std::vector<onnx::Value*>& results);
  onnx::Value* constant(NodeDef& node, NodeConverter& converter);
  [[nodiscard]] Dim batch_of(const NodeDef& node) const;
  onnx::Value* placeholder(const NodeDef& node, const std::optional<Shape>& shape);
  onnx::Value* with_default(const NodeDef& node, NodeConverter& converter);
  void convert_branches(const NodeDef& node, NodeConverter& converter);
  void convert_loop(const NodeDef& node, NodeConverter& converter);

  Reading& reading_;
  std::shared_ptr<const NodeSet> nodes_;
  std::map<TensorName, std::size_t> arguments_;
  std::vector<TensorName> results_;
  int depth_;

  std::unordered_map<const NodeDef*, std::vector<TensorName>> reads_;
  std::vector<NodeDef*> order_;
  std::vector<TensorName> captures_;
  std::unordered_map<const NodeDef*, LoopPlan> loops_;
  std::unordered_map<const NodeDef*, BranchPlan> branches_;
  std::unordered_map<const NodeDef*, std::size_t> items_;
  std::unordered_map<std::string, std::vector<Use>> uses_;  ///< The uses of the outputs of each node.

  onnx::Graph* graph_ = nullptr;
  std::vector<onnx::Value*> argument_values_;
  std::map<TensorName, onnx::Value*> captured_values_;
  std::unordered_map<std::string, std::vector<onnx::Value*>> values_;
};

}  // namespace graft::tensorflow

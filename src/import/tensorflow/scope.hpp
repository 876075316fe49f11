// The nodes that one ONNX graph is made of: the whole network, a branch of an If, the body of a loop.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "import/tensorflow/graph.hpp"
#include "import/tensorflow/import.hpp"
#include "import/tensorflow/node_converter.hpp"
#include "tensorflow/graph_def.pb.h"

namespace graft::tensorflow {

/// Nodes by name, of the network or of one function's body.
struct NodeSet {
  std::unordered_map<std::string, NodeDef*> by_name;
  /// LoopCond of TensorFlow 1 -> the Switches that take a loop's variables into its body.
  std::unordered_map<std::string, std::vector<const NodeDef*>> loop_switches;

  explicit NodeSet(GraphDef& graph);
};

/// What all scopes of one file share.
struct Reading {
  const TensorFlowOptions& options;
  const FunctionDefLibrary& library;
  const onnx::Pieces& pieces;  ///< Of the file, for large tensors.
  onnx::ContentsMap contents = {};
  std::map<std::string, std::vector<std::string>> unknown = {};  ///< Operator that Graft does not read -> its nodes.
  std::list<GraphDef> bodies = {};                               ///< Of functions that became branches and loops.
  std::unordered_set<const NodeDef*> needed = {};                ///< Nodes in all scopes.
  Origin origin = {};
  std::size_t converted = 0;  ///< Nodes.
  // Functions and loops in one another could grow without end, and constants of one number stand for any size.
  std::size_t room_for_calls = std::size_t{4} << 20U;  ///< Bytes of functions that are inlined.
  ConstantBudget constants = {};
  std::size_t room_for_searches = 1 << 20;     ///< Nodes seen on the way to a Switch.
  std::size_t room_for_plans = 1 << 16;        ///< Nodes in all scopes.
  std::size_t room_for_conversions = 1 << 17;  ///< A loop's condition is converted twice.
};

class Scope;

/// An operator that gives its one input as it is.
[[nodiscard]] bool is_identity(const NodeDef& node);

/// `while cond(state): state = body(state)`, from While or from a frame of TensorFlow 1.
struct LoopPlan {
  std::vector<TensorName> initial;   ///< Tensors of the scope around the loop.
  std::vector<TensorName> captures;  ///< What else it reads there.
  std::unique_ptr<Scope> condition;
  std::unique_ptr<Scope> body;
};

struct BranchPlan {
  std::unique_ptr<Scope> when_true;
  std::unique_ptr<Scope> when_false;
};

/// First planned (what is needed, in which order, and whether Graft reads all of it), then converted, where it is part
/// of a loop more than once.
class Scope {
 public:
  /// `arguments` are tensors that convert() is given; `depth` counts the scopes around this one.
  Scope(Reading& reading, std::shared_ptr<const NodeSet> nodes, std::map<TensorName, std::size_t> arguments,
        std::vector<TensorName> results, int depth);

  void plan();
  /// Adds the nodes to `graph`. `captured` are the values of captures(), in a frame. Values may be null for arguments
  /// that nothing reads.
  std::vector<onnx::Value*> convert(onnx::Graph& graph, const std::vector<onnx::Value*>& arguments,
                                    const std::map<TensorName, onnx::Value*>& captured = {});

  [[nodiscard]] const std::vector<TensorName>& results() const { return results_; }
  /// Tensors of the scope around that a frame reads without changing them.
  [[nodiscard]] const std::vector<TensorName>& captures() const { return captures_; }
  [[nodiscard]] const NodeDef* node_of(const TensorName& name) const;
  /// The tensor after Identities.
  [[nodiscard]] TensorName source_of(TensorName name) const;
  [[nodiscard]] std::optional<std::size_t> argument(const TensorName& name) const;
  /// The nodes that read an argument, after Identities.
  [[nodiscard]] std::vector<const NodeDef*> readers_of_argument(std::size_t index) const;
  /// Null where there is no such tensor, or none that Graft keeps.
  [[nodiscard]] onnx::Value* try_value(const TensorName& name) const;
  /// From now on the node's result is its input `item`: what a loop appends to a list.
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

  onnx::Graph* graph_ = nullptr;
  std::vector<onnx::Value*> argument_values_;
  std::map<TensorName, onnx::Value*> captured_values_;
  std::unordered_map<std::string, std::vector<onnx::Value*>> values_;
};

}  // namespace graft::tensorflow

// A model in memory: graphs of nodes and values that can be edited, functions, and what surrounds them.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

#include "graft/attribute.hpp"
#include "graft/error.hpp"
#include "graft/shape.hpp"
#include "onnx/tensor_data.hpp"

namespace graft::onnx {

class Graph;
struct Node;

/// A dimension of which nothing is known, not even a name; each call makes a different one. It is written to a file
/// as a dimension without a value, and shown as "?".
[[nodiscard]] Dim unknown_dim();
[[nodiscard]] bool is_unknown(const Dim& dim);

struct Use {
  Node* node = nullptr;
  std::size_t index = 0;  ///< Which input of the node.
  friend bool operator==(const Use&, const Use&) = default;
};

/// What flows between nodes. Owned by a graph; made and removed through it.
/// Change `type`, `shape` and `doc` freely; the links are kept by Graph.
struct Value {
  std::string name;
  std::optional<ElementType> type;  ///< Of a tensor; nothing where it is unknown or the value is no tensor.
  std::optional<Shape> shape;       ///< Nothing where not even the rank is known.
  std::string opaque;               ///< Type or annotations that Graft does not model (sequences, maps), in wire form.
  std::string sparse_initializer;   ///< A SparseTensorProto in wire form; such a value is not constant to Graft.

  Graph* graph = nullptr;    ///< Whose own it is.
  Node* producer = nullptr;  ///< Null for inputs and initializers.
  std::size_t output_index = 0;
  std::vector<Use> uses;                  ///< Also those by nodes of sub-graphs inside `graph`.
  std::optional<TensorData> initializer;  ///< With is_input: only the default of that input, not a constant.
  bool is_input = false;                  ///< Of its graph.
  std::size_t output_count = 0;           ///< How many graph outputs, of this graph or of sub-graphs, are this value.

  [[nodiscard]] bool is_output() const { return output_count != 0; }
  [[nodiscard]] bool is_unused() const { return uses.empty() && output_count == 0; }
  /// The constant this value always has: an initializer that is not an input, or the output of a Constant node.
  [[nodiscard]] std::optional<TensorData> constant() const;
  [[nodiscard]] std::optional<std::int64_t> rank() const;
};

/// In the body of a function: the value of the attribute `name` of the node that calls it.
struct AttributeReference {
  std::string name;
  std::int32_t onnx_type = 0;  ///< AttributeProto.AttributeType
  friend bool operator==(const AttributeReference&, const AttributeReference&) = default;
};

/// An attribute kind that Graft keeps but does not look into: sparse tensors and types, an AttributeProto in wire form.
struct OpaqueAttribute {
  std::string proto;
};

using AttributeData =
    std::variant<float, std::int64_t, std::string, std::vector<float>, std::vector<std::int64_t>,
                 std::vector<std::string>, TensorData, std::vector<TensorData>, std::unique_ptr<Graph>,
                 std::vector<std::unique_ptr<Graph>>, AttributeReference, OpaqueAttribute>;

/// The value of one attribute of a node. Made from any alternative of AttributeData, or from an AttributeValue.
struct NodeAttribute {
  AttributeData data;
  std::string doc;

  NodeAttribute() = default;
  NodeAttribute(AttributeData value) : data(std::move(value)) {}  // NOLINT(google-explicit-constructor)
  NodeAttribute(const AttributeValue& value);                     // NOLINT(google-explicit-constructor)

  template <class T>
  [[nodiscard]] const T* get() const {
    return std::get_if<T>(&data);
  }
  /// Nothing for the kinds that operators do not have (strings, tensors, graphs, references).
  [[nodiscard]] std::optional<AttributeValue> value() const;
  /// "float", "int", "string", "floats", "ints", "strings", "tensor", "graph", "reference" ...
  [[nodiscard]] std::string_view kind() const;
};

/// Owned by a graph; made and removed through it. Inputs and outputs change through Graph, the rest freely.
struct Node {
  std::string op_type;
  std::string domain;           ///< "" for ai.onnx.
  std::string overload;         ///< IR 10; TensorRT ignores it.
  std::string name;             ///< May be empty, and need not be unique.
  std::vector<Value*> inputs;   ///< Null where an optional input is absent.
  std::vector<Value*> outputs;  ///< Null where an optional output is absent.
  std::map<std::string, NodeAttribute, std::less<>> attributes;
  std::string doc;
  std::map<std::string, std::string, std::less<>> metadata;
  std::string opaque;  ///< Protobuf fields that Graft does not model, in wire form.
  Graph* graph = nullptr;

  /// In the standard domain, and of this type.
  [[nodiscard]] bool is(std::string_view type) const { return op_type == type && domain.empty(); }
  [[nodiscard]] Value* input(std::size_t i) const { return i < inputs.size() ? inputs[i] : nullptr; }
  [[nodiscard]] Value* output(std::size_t i = 0) const { return i < outputs.size() ? outputs[i] : nullptr; }
  [[nodiscard]] const NodeAttribute* attribute(std::string_view attribute_name) const;

  /// The attribute, or `otherwise` where it is absent. Throws Error naming node and attribute if it is of another kind.
  [[nodiscard]] std::int64_t int_or(std::string_view attribute_name, std::int64_t otherwise) const;
  [[nodiscard]] float float_or(std::string_view attribute_name, float otherwise) const;
  [[nodiscard]] std::string string_or(std::string_view attribute_name, std::string_view otherwise) const;
  [[nodiscard]] std::optional<std::vector<std::int64_t>> ints(std::string_view attribute_name) const;
  [[nodiscard]] std::optional<std::vector<float>> floats(std::string_view attribute_name) const;

  /// The sub-graphs in its attributes (branches of If, bodies of Loop and Scan), in the order of the attributes' names.
  [[nodiscard]] std::vector<Graph*> subgraphs() const;

 private:
  friend class Graph;
  std::list<std::unique_ptr<Node>>::iterator position_;
};

/// "node 'conv1' (Conv)", for messages; a node without a name is called after its first output.
[[nodiscard]] std::string describe(const Node& node);

/// Nodes in topological order, and the values between them. A sub-graph sees the values of the graphs around it.
/// Not copyable; see Model::clone. Pointers to nodes and values stay valid until those are removed.
class Graph {
 public:
  /// `parent` is the graph whose node holds this one in an attribute; null for a main graph or a function's body.
  explicit Graph(Graph* parent = nullptr);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  std::string name;
  std::string doc;
  std::map<std::string, std::string, std::less<>> metadata;
  std::string opaque;  ///< Protobuf fields that Graft does not model (quantization annotations), in wire form.
  /// Operator set version of each domain ("" is ai.onnx). Of a main graph or function body; a sub-graph has none.
  std::map<std::string, std::int64_t, std::less<>> opset_imports;

  [[nodiscard]] Graph* parent() const { return parent_; }
  [[nodiscard]] Graph& root();
  [[nodiscard]] const Graph& root() const;
  /// The version that this graph's root imports; 0 for a domain that it does not import.
  [[nodiscard]] std::int64_t opset(std::string_view domain = "") const;

  [[nodiscard]] const std::vector<Value*>& inputs() const { return inputs_; }
  [[nodiscard]] const std::vector<Value*>& outputs() const { return outputs_; }
  /// A snapshot in topological order; it stays good for looping while nodes are added and removed.
  [[nodiscard]] std::vector<Node*> nodes() const;
  [[nodiscard]] std::size_t node_count() const { return nodes_.size(); }
  /// A snapshot of this graph's own values, in the order in which they were made.
  [[nodiscard]] std::vector<Value*> values() const;
  /// Those with an initializer, in the order of the file.
  [[nodiscard]] std::vector<Value*> initializers() const;

  /// In this graph only.
  [[nodiscard]] Value* find_local(std::string_view value_name) const;
  /// In this graph, then in those around it, as ONNX resolves names.
  [[nodiscard]] Value* find(std::string_view value_name) const;
  [[nodiscard]] Node* find_node(std::string_view node_name) const;

  /// A name that no value of the whole model graph has: `hint`, or `hint~1`, `hint~2` ... TensorFlow numbers its nodes
  /// `hint_1`, and a node of that name may have been left out: the new value must not be taken for it.
  [[nodiscard]] std::string unique_name(std::string_view hint) const;

  /// A new value under exactly this name. Throws Error if this graph has it already.
  Value* add_value(std::string value_name);
  /// A new value under unique_name(hint).
  Value* make_value(std::string_view hint);
  Value* add_input(std::string value_name);
  /// A constant under unique_name(hint); its type and shape are set.
  Value* add_constant(std::string_view hint, TensorData tensor);
  void set_initializer(Value& value, TensorData tensor);
  void add_output(Value& value);
  void replace_output(std::size_t index, Value& value);
  void remove_output(std::size_t index);
  void set_is_input(Value& value, bool is_input);
  void rename(Value& value, std::string new_name);
  /// Throws Error unless it is unused and has no producer.
  void remove_value(Value& value);

  /// A node with a new value for each name in `output_hints` (made unique; "" for an absent output), placed before
  /// `before`, or last. Inputs may be null, or values of the graphs around this one.
  Node* add_node(std::string op_type, std::vector<Value*> inputs, const std::vector<std::string>& output_hints,
                 Node* before = nullptr, std::string domain = "");
  /// The same, giving outputs that exist and have no producer yet.
  Node* add_node_with_outputs(std::string op_type, std::vector<Value*> inputs, std::vector<Value*> outputs,
                              Node* before = nullptr, std::string domain = "");
  /// Sub-graphs in its attributes go with it. Its outputs go too if unused; throws Error if one is used.
  void remove_node(Node& node);
  /// The nodes of this graph, not of those inside it, that `edit` adds and leaves there, as they were added.
  std::vector<Node*> nodes_added_by(const std::function<void()>& edit);
  /// Takes a sub-graph out of its node, with the uses it makes of outer values; other attributes are simply erased.
  void remove_attribute(Node& node, std::string_view attribute_name);

  void set_input(Node& node, std::size_t index, Value* value);  ///< Appends where index is one past the last.
  void add_input_to(Node& node, Value* value) { set_input(node, node.inputs.size(), value); }
  void remove_last_input(Node& node);
  /// A new value under unique_name(hint), behind the outputs that the node has.
  Value* add_output_to(Node& node, std::string_view hint);
  /// `to` takes the place of `from` everywhere: in nodes, in sub-graphs and as graph output. A graph output keeps its
  /// name: the name moves to `to` where `to` is an inner value, otherwise an Identity between them makes the output.
  /// What is known of the type of `from` is kept where nothing is known of `to`. `except` keeps its inputs: the node
  /// that makes `to` from `from`, say.
  void replace_all_uses(Value& from, Value& to, const Node* except = nullptr);
  /// Gives a node's output another producer, keeping the value itself (name, uses, type).
  void move_output(Node& from, std::size_t from_index, Node& to, std::size_t to_index);

  /// Takes an output away from its node; the value stays, without a producer.
  void detach_output(Node& node, std::size_t index);

  /// Restores the order after edits, as near to the present order as can be. Throws Error naming a node of a cycle.
  void topological_sort();
  /// Removes nodes whose outputs are all unused, repeatedly, and initializers without use. Returns the number of nodes.
  std::size_t remove_dead();
  /// Links, order, scopes and names. Throws Error (internal) naming the first violation; for tests and debug builds.
  void check() const;

  /// Calls `f` for each node, also inside sub-graphs, outer nodes first. `f` may remove that node if it holds no
  /// sub-graph; nodes that it adds are not visited.
  void for_each_node(const std::function<void(Node&)>& f);
  void for_each_node(const std::function<void(const Node&)>& f) const;

 private:
  Node* insert_node(std::unique_ptr<Node> node, Node* before);
  void count_name(const std::string& value_name);
  void forget_name(const std::string& value_name);
  void forget_all_names();

  Graph* parent_ = nullptr;
  std::vector<Value*> inputs_;
  std::vector<Value*> outputs_;
  std::list<std::unique_ptr<Node>> nodes_;
  std::vector<Node*>* added_ = nullptr;  // while nodes_added_by runs
  std::list<std::unique_ptr<Value>> values_;
  std::unordered_map<std::string, std::list<std::unique_ptr<Value>>::iterator> by_name_;
  std::unordered_map<std::string, std::size_t> names_;  // of a root: how often a name is used in it and its sub-graphs
  mutable std::unordered_map<std::string, std::size_t> suffixes_;  // of a root: the next suffix to try for a hint
};

/// Copies a graph. Values of graphs around it are looked up with `outer`, which returns the value to use instead.
[[nodiscard]] std::unique_ptr<Graph> clone_graph(const Graph& graph, Graph* new_parent,
                                                 const std::function<Value*(Value*)>& outer);
/// Copies an attribute that holds no graph; throws Error (internal) for one that does.
[[nodiscard]] NodeAttribute copy_attribute(const NodeAttribute& attribute);

/// Identifies a function; overload is "" except in IR 10 models that use overloads.
struct FunctionKey {
  std::string domain;
  std::string name;
  std::string overload;
  friend auto operator<=>(const FunctionKey&, const FunctionKey&) = default;  // NOLINT(modernize-use-nullptr): it errs
};

/// A model-local function. The body's inputs and outputs are the function's; its opset_imports are the function's.
struct FunctionDefinition {
  FunctionKey key;
  std::vector<std::string> attributes;  ///< Those without a default; a call must give them if the body needs them.
  std::map<std::string, NodeAttribute, std::less<>> attribute_defaults;
  std::unique_ptr<Graph> body = std::make_unique<Graph>();
  std::string doc;
  std::map<std::string, std::string, std::less<>> metadata;
  std::string opaque;

  [[nodiscard]] FunctionDefinition clone() const;
};

/// A whole model. Movable; copied with clone().
struct Model {
  std::int64_t ir_version = 8;
  std::string producer_name;
  std::string producer_version;
  std::string domain;
  std::int64_t model_version = 0;
  std::string doc;
  std::map<std::string, std::string, std::less<>> metadata;
  std::string opaque;  ///< Protobuf fields that Graft does not model, in wire form.
  std::unique_ptr<Graph> main = std::make_unique<Graph>();
  std::map<FunctionKey, FunctionDefinition> functions;
  std::string source = "model";  ///< The file it came from, for messages.

  [[nodiscard]] Graph& graph() { return *main; }
  [[nodiscard]] const Graph& graph() const { return *main; }
  [[nodiscard]] const FunctionDefinition* find_function(const Node& call) const;
  [[nodiscard]] Model clone() const;
};

}  // namespace graft::onnx

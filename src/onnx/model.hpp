// A model in memory: editable graphs of nodes and values, functions and metadata.
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
#include <variant>
#include <vector>

#include "graft/error.hpp"
#include "graft/operator/attribute.hpp"
#include "graft/operator/shape.hpp"
#include "onnx/tensor_data.hpp"

namespace graft::onnx {

class Graph;
struct Node;

/// Returns a dimension about which nothing is known, not even a name; each call returns a different one. A file stores
/// it as a dimension without a value, and messages show it as "?".
[[nodiscard]] Dim unknown_dim();
[[nodiscard]] bool is_unknown(const Dim& dim);

struct Use {
  Node* node = nullptr;
  std::size_t index = 0;  ///< The index of the input at the node.
  friend bool operator==(const Use&, const Use&) = default;
};

/// The type of a sequence or an optional whose tensors have one element type.
struct Container {
  enum class Kind : std::uint8_t { sequence, optional, optional_sequence };
  Kind kind = Kind::sequence;
  ElementType type = ElementType::undefined;
  /// The common shape of the contained tensors, with unknown dimensions where the tensors may differ; absent if not
  /// even the rank is known.
  std::optional<Shape> shape;
};

/// A value that nodes compute and read. A graph owns, creates and removes it. `type` and `shape` may be changed freely;
/// the links are maintained by Graph.
struct Value {
  std::string name;
  /// The element type of a tensor; absent if it is unknown or the value is not a tensor.
  std::optional<ElementType> type;
  std::optional<Shape> shape;          ///< The shape of a tensor; absent if not even the rank is known.
  std::optional<Container> container;  ///< The type of a sequence or an optional of tensors; absent if it is unknown.
  /// The ValueInfoProto of a value whose type Graft does not model (such as maps), or its fields that Graft does not
  /// interpret, in wire form. Empty otherwise.
  std::string opaque;
  std::string sparse_initializer;  ///< A SparseTensorProto in wire form; such a value does not count as constant.

  Graph* graph = nullptr;    ///< The graph that owns the value.
  Node* producer = nullptr;  ///< The node that computes the value; null for inputs and initializers.
  std::size_t output_index = 0;
  std::vector<Use> uses;  ///< The readers of the value, including nodes of subgraphs inside `graph`.
  /// The data of a constant. If `is_input` is true, the data are only the default of that input, which a caller may
  /// replace.
  std::optional<TensorData> initializer;
  bool is_input = false;  ///< Whether the value is an input of its graph.
  /// The number of outputs, of this graph and of its subgraphs, that refer to this value.
  std::size_t output_count = 0;

  [[nodiscard]] bool is_output() const { return output_count != 0; }
  [[nodiscard]] bool is_unused() const { return uses.empty() && output_count == 0; }
  /// Returns the constant that this value always has (an initializer that is not an input, or the output of a Constant
  /// node), or nothing.
  [[nodiscard]] std::optional<TensorData> constant() const;
  [[nodiscard]] std::optional<std::int64_t> rank() const;
};

/// Returns the integers of a constant, or nothing if the value is null, is not a constant or holds no integers.
[[nodiscard]] std::optional<std::vector<std::int64_t>> constant_ints(const Value* value);

/// A reference, in the body of a function, to the attribute `name` of the node that calls the function.
struct AttributeReference {
  std::string name;
  std::int32_t onnx_type = 0;  ///< The type as an AttributeProto.AttributeType.
  friend bool operator==(const AttributeReference&, const AttributeReference&) = default;
};

/// An attribute of a kind that Graft preserves but does not interpret (sparse tensors and types), as an AttributeProto
/// in wire form.
struct OpaqueAttribute {
  std::string proto;
};

using AttributeData =
    std::variant<float, std::int64_t, std::string, std::vector<float>, std::vector<std::int64_t>,
                 std::vector<std::string>, TensorData, std::vector<TensorData>, std::unique_ptr<Graph>,
                 std::vector<std::unique_ptr<Graph>>, AttributeReference, OpaqueAttribute>;

/// The value of one attribute of a node. It can be constructed from any alternative of AttributeData, or from an
/// AttributeValue.
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
  /// Returns the value as an AttributeValue, the type in which operators store attributes. Returns nothing for kinds
  /// that operators do not have (lists of strings, tensors, graphs, references).
  [[nodiscard]] std::optional<AttributeValue> value() const;
  /// Returns the kind for messages: "float", "int", "string", "floats", "ints", "strings", "tensor", "graph",
  /// "reference" ...
  [[nodiscard]] std::string_view kind() const;
};

/// A node, which a graph owns, creates and removes. Inputs and outputs are changed through Graph, other members
/// directly.
struct Node {
  std::string op_type;
  std::string domain;           ///< The domain of the operator; "" for ai.onnx.
  std::string overload;         ///< The overload of a function, since IR 10; TensorRT ignores it.
  std::string name;             ///< The name, which may be empty and need not be unique.
  std::vector<Value*> inputs;   ///< The inputs, with null for an optional input that is absent.
  std::vector<Value*> outputs;  ///< The outputs, with null for an optional output that is absent.
  std::map<std::string, NodeAttribute, std::less<>> attributes;
  std::string doc;
  std::map<std::string, std::string, std::less<>> metadata;
  std::string opaque;  ///< Protobuf fields that Graft does not model, in wire form.
  Graph* graph = nullptr;

  /// Returns whether the node is in the standard domain and of this type.
  [[nodiscard]] bool is(std::string_view type) const { return op_type == type && domain.empty(); }
  [[nodiscard]] Value* input(std::size_t i) const { return i < inputs.size() ? inputs[i] : nullptr; }
  [[nodiscard]] Value* output(std::size_t i = 0) const { return i < outputs.size() ? outputs[i] : nullptr; }
  /// Returns whether an output is present and is read or returned.
  [[nodiscard]] bool is_output_used(std::size_t i) const;
  [[nodiscard]] std::vector<Value*> used_outputs() const;
  [[nodiscard]] const NodeAttribute* attribute(std::string_view attribute_name) const;

  /// Each function returns the value of an attribute. If the attribute is absent, int_or, float_or and string_or return
  /// `otherwise`, ints and floats return nothing. Throws Error naming node and attribute if the attribute is of another
  /// kind.
  [[nodiscard]] std::int64_t int_or(std::string_view attribute_name, std::int64_t otherwise) const;
  [[nodiscard]] float float_or(std::string_view attribute_name, float otherwise) const;
  [[nodiscard]] std::string string_or(std::string_view attribute_name, std::string_view otherwise) const;
  [[nodiscard]] std::optional<std::vector<std::int64_t>> ints(std::string_view attribute_name) const;
  [[nodiscard]] std::optional<std::vector<float>> floats(std::string_view attribute_name) const;

  /// Returns the subgraphs in the node's attributes (branches of If, bodies of Loop and Scan), in the order of the
  /// attributes' names.
  [[nodiscard]] std::vector<Graph*> subgraphs() const;

 private:
  friend class Graph;
  std::list<std::unique_ptr<Node>>::iterator position_;
};

/// Returns a description for messages, such as "node 'conv1' (Conv)". A node without a name is named after its first
/// output.
[[nodiscard]] std::string describe(const Node& node);

/// A graph of nodes in topological order, and the values between them. Nodes of a subgraph can also read values of the
/// enclosing graphs. Not copyable; see Model::clone. Pointers to nodes and values stay valid until those are removed.
class Graph {
 public:
  /// Creates an empty graph. `parent` is the graph whose node contains this one in an attribute; null for a main graph
  /// or a function's body.
  explicit Graph(Graph* parent = nullptr);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  std::string name;
  std::string doc;
  std::map<std::string, std::string, std::less<>> metadata;
  std::string opaque;  ///< Protobuf fields that Graft does not model (quantization annotations), in wire form.
  /// The opset of each domain ("" is ai.onnx). Set for a main graph or a function body; empty for a subgraph.
  std::map<std::string, std::int64_t, std::less<>> opset_imports;

  [[nodiscard]] Graph* parent() const { return parent_; }
  [[nodiscard]] Graph& root();
  [[nodiscard]] const Graph& root() const;
  /// Returns the opset version of a domain that the main graph or function body around this graph imports; 0 if the
  /// domain is not imported.
  [[nodiscard]] std::int64_t opset(std::string_view domain = "") const;

  [[nodiscard]] const std::vector<Value*>& inputs() const { return inputs_; }
  [[nodiscard]] const std::vector<Value*>& outputs() const { return outputs_; }
  /// Returns a snapshot of the nodes in topological order. Callers may iterate over it while nodes are added and
  /// removed.
  [[nodiscard]] std::vector<Node*> nodes() const;
  [[nodiscard]] std::size_t node_count() const { return nodes_.size(); }
  /// Returns a snapshot of this graph's own values, in the order of their creation.
  [[nodiscard]] std::vector<Value*> values() const;
  /// Returns the values with an initializer, in the order of the file.
  [[nodiscard]] std::vector<Value*> initializers() const;

  /// Returns the value of that name in this graph, or null.
  [[nodiscard]] Value* find_local(std::string_view value_name) const;
  /// Returns the value of that name in this graph or in the nearest enclosing graph, as ONNX resolves names, or null.
  [[nodiscard]] Value* find(std::string_view value_name) const;
  [[nodiscard]] Node* find_node(std::string_view node_name) const;

  /// Returns a name that no value of the whole model graph has: `hint`, or `hint~1`, `hint~2` ... The suffix is not
  /// `_1`, because TensorFlow numbers its nodes `hint_1`. If such a node was left out, the new value could be mistaken
  /// for it.
  [[nodiscard]] std::string unique_name(std::string_view hint) const;

  /// Adds a value with exactly this name. Throws Error if this graph already has a value of that name.
  Value* add_value(std::string value_name);
  /// Adds a value under unique_name(hint).
  Value* make_value(std::string_view hint);
  Value* add_input(std::string value_name);
  /// Adds a constant under unique_name(hint), with its type and shape.
  Value* add_constant(std::string_view hint, TensorData tensor);
  void set_initializer(Value& value, TensorData tensor);
  void add_output(Value& value);
  void replace_output(std::size_t index, Value& value);
  void remove_output(std::size_t index);
  void set_is_input(Value& value, bool is_input);
  void rename(Value& value, std::string new_name);
  /// Removes a value. Throws Error if the value is used or has a producer.
  void remove_value(Value& value);

  /// Adds a node with a new value for each name in `output_hints` (made unique; "" for an absent output). The node is
  /// inserted before the node `before`, or at the end if that is null. Inputs may be null, or values of enclosing
  /// graphs. The domain "" is ai.onnx.
  Node* add_node(std::string op_type, std::vector<Value*> inputs, const std::vector<std::string>& output_hints,
                 Node* before = nullptr, std::string domain = "");
  /// Adds a node whose outputs are existing values without a producer. `before` and `domain` have the same meaning as
  /// in add_node().
  Node* add_node_with_outputs(std::string op_type, std::vector<Value*> inputs, std::vector<Value*> outputs,
                              Node* before = nullptr, std::string domain = "");
  /// Removes a node, the subgraphs in its attributes, and its outputs. Throws Error if an output is used.
  void remove_node(Node& node);
  /// Calls `edit` and returns the nodes that it added to this graph and did not remove, in the order in which they were
  /// added. Nodes of subgraphs are not included.
  std::vector<Node*> nodes_added_by(const std::function<void()>& edit);
  /// Removes an attribute that contains a subgraph, and unregisters the subgraph's uses of outer values. Other
  /// attributes can simply be erased.
  void remove_attribute(Node& node, std::string_view attribute_name);

  /// Sets an input of a node. Appends an input if `index` is one past the last.
  void set_input(Node& node, std::size_t index, Value* value);
  void add_input_to(Node& node, Value* value) { set_input(node, node.inputs.size(), value); }
  void remove_last_input(Node& node);
  /// Adds an output with a new value, named unique_name(hint), after the existing outputs of the node.
  Value* add_output_to(Node& node, std::string_view hint);
  /// Replaces `from` with `to` everywhere: in nodes, in subgraphs and as a graph output. A graph output keeps its name:
  /// `to` takes the name if it is an inner value; otherwise an Identity after `to` computes the output. If the type or
  /// shape of `to` is unknown, it takes that of `from`. `except`, for example the node that computes `to` from `from`,
  /// keeps its inputs.
  void replace_all_uses(Value& from, Value& to, const Node* except = nullptr);
  /// Moves an output from one node to another; the value keeps its name, uses and type.
  void move_output(Node& from, std::size_t from_index, Node& to, std::size_t to_index);

  /// Detaches an output from its node; the value remains without a producer.
  void detach_output(Node& node, std::size_t index);

  /// Restores the topological order after edits, changing the order of nodes as little as possible. Throws Error naming
  /// a node of a cycle.
  void topological_sort();
  /// Removes nodes whose outputs are all unused, until none are left, and unused initializers. Returns the number of
  /// removed nodes.
  std::size_t remove_dead();
  /// Checks links, order, scopes and names. Throws Error (internal) naming the first violation. Meant for tests and
  /// debug builds.
  void check() const;

  /// Calls `f` for each node, also inside subgraphs, outer nodes first. `f` may remove the node if it contains no
  /// subgraph; nodes that `f` adds are not visited.
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
  std::vector<Node*>* added_ = nullptr;  // Receives added nodes while nodes_added_by runs, otherwise null.
  std::list<std::unique_ptr<Value>> values_;
  std::unordered_map<std::string, std::list<std::unique_ptr<Value>>::iterator> by_name_;
  // For a root graph: how often each name is used in it and in its subgraphs.
  std::unordered_map<std::string, std::size_t> names_;
  // For a root graph: the next suffix to try for a hint.
  mutable std::unordered_map<std::string, std::size_t> suffixes_;
};

/// Copies a graph to a subgraph of `new_parent`, which is null for a main graph. `outer` maps each value of the
/// enclosing graphs to the value that the copy uses.
[[nodiscard]] std::unique_ptr<Graph> clone_graph(const Graph& graph, Graph* new_parent,
                                                 const std::function<Value*(Value*)>& outer);
/// Copies an attribute that does not contain a graph. Throws Error (internal) for one that does.
[[nodiscard]] NodeAttribute copy_attribute(const NodeAttribute& attribute);

/// The key of a function; `overload` is "" except in IR 10 models that use overloads.
struct FunctionKey {
  std::string domain;
  std::string name;
  std::string overload;
  friend auto operator<=>(const FunctionKey&, const FunctionKey&) = default;  // NOLINT(modernize-use-nullptr): it errs
};

/// A model-local function. Its graph contains the inputs, outputs and opset_imports.
struct FunctionDefinition {
  FunctionKey key;
  /// The attributes without a default; a call must have those that the body needs.
  std::vector<std::string> attributes;
  std::map<std::string, NodeAttribute, std::less<>> attribute_defaults;
  std::unique_ptr<Graph> body = std::make_unique<Graph>();
  std::string doc;
  std::map<std::string, std::string, std::less<>> metadata;
  std::string opaque;

  [[nodiscard]] FunctionDefinition clone() const;
};

/// A whole model. It is movable, and clone() copies it.
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
  std::string source = "model";  ///< The file from which the model was read, for messages.

  [[nodiscard]] Graph& graph() { return *main; }
  [[nodiscard]] const Graph& graph() const { return *main; }
  [[nodiscard]] const FunctionDefinition* find_function(const Node& call) const;
  [[nodiscard]] Model clone() const;
};

}  // namespace graft::onnx

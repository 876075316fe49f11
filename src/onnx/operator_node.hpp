// Finds the operators of nodes, and creates nodes of operators.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graft/operator/operator.hpp"
#include "onnx/model.hpp"

namespace graft::onnx {

/// The metadata key for the type of the layer in the imported network, such as "Convolution" in Caffe.
inline constexpr std::string_view layer_type_note = "graft.layer_type";
/// The metadata key for the operator's name, on a node that has another name.
inline constexpr std::string_view operator_note = "graft.operator";
/// The attribute in which TensorRT's parser expects the indices of a plugin node's shape inputs.
inline constexpr std::string_view shape_input_indices = "tensorrt_plugin_shape_input_indices";
/// The metadata key for the reason why a node is kept although a native layer could replace it.
inline constexpr std::string_view keep_note = "graft.keep";

/// An operator type. If it was found by the name of another library's plugin, `drop_in` describes how the operator
/// replaces that plugin; `drop_in` is null if the node has the operator's own name.
struct OperatorMatch {
  const OperatorType* type = nullptr;
  const DropIn* drop_in = nullptr;
  explicit operator bool() const { return type != nullptr; }
};

/// Returns the operator that a node stands for; empty if there is no operator, or if the node has a fault. The operator
/// is found
/// - in the domain graft, by the metadata `graft.operator` or by the name of the node;
/// - in a loaded library, by the name of the node in any domain, as TensorRT's parser finds a plugin. The node must not
///   request another `plugin_version` or `plugin_namespace`, and ONNX must not define that name in the domain;
/// - as the replacement of another library's plugin, by the plugin's name and, if the node has one, its
///   `plugin_version`. The node must be in graft or in a domain of plugin nodes ("", TRT ...), except for a plugin that
///   has a PluginForm. It must have no `plugin_namespace`, and ONNX must not define that name in the domain.
[[nodiscard]] OperatorMatch find_operator_for(const Node& node);

/// Returns the operator of a node that has another name or domain than Graft's, and that adopt_drop_ins would convert
/// to a Graft node; empty for any other node.
[[nodiscard]] OperatorMatch find_adopted_operator(const Node& node);

/// Returns the Graft operator that computes the same as a node of a standard ONNX operator (OperatorType::onnx_form),
/// or null if there is no such operator or if the node lacks an attribute that it requires. The node itself is not a
/// Graft node.
[[nodiscard]] const OperatorType* find_onnx_operator(const Node& node);
/// Returns whether the model has a node for which find_onnx_operator() finds an operator.
[[nodiscard]] bool has_onnx_operators(const Model& model);

/// Returns the node's inputs in the order of its operator, with null for an input that the node omits although later
/// inputs are present. Returns the inputs unchanged if the node has no operator. Throws Error if a node under the name
/// of another library's plugin has more or fewer inputs than that plugin, or omits a required one.
[[nodiscard]] std::vector<Value*> operator_inputs(const Node& node);

/// Returns the type of an input that a node omits although later inputs are present: the type of an input with the same
/// type constraint, or nothing if it is unknown.
[[nodiscard]] std::optional<DType> dtype_left_out(const OperatorType& type, std::span<Value* const> inputs,
                                                  std::size_t port);

/// An input whose type the operator does not accept in combination with the types of the earlier inputs.
struct RefusedType {
  const Value* input = nullptr;
  std::vector<DType> allowed;  ///< The types that are allowed instead, given the types of the earlier inputs.
};
/// Returns the first input with a refused type, or nothing. `inputs` are in the order of the operator; unknown types
/// are skipped. If `cast` is not null, the type that it returns is checked in place of the type of each input, as after
/// a Cast before the node.
[[nodiscard]] std::optional<RefusedType> refused_type(const OperatorType& type, std::span<Value* const> inputs,
                                                      ElementType (*cast)(ElementType) = nullptr);

/// Adds a constant without elements, of the type `element`, for input `port` of an operator, and returns it. It takes
/// the place of an input that a node omits although later inputs are present.
Value* add_left_out(Graph& graph, const OperatorType& type, std::size_t port, ElementType element);

/// Creates the operator of a node and sets the node's attributes on it. Returns null if find_operator_for finds no
/// operator. Throws Error naming node and attribute if an attribute is unknown, ill-typed, out of range, or required
/// and missing.
[[nodiscard]] std::unique_ptr<Operator> make_operator(const Node& node);

/// Throws Error naming the node if its operator refuses the shapes of its inputs and outputs, for example the number of
/// weights or the size of a window. Does nothing for a node without an operator, for unknown types and sizes, and for
/// types that the operator does not accept.
void check_operator(const Node& node);

/// Returns whether an input of a node is a shape input: infer_shapes uses its values instead of its shape.
[[nodiscard]] bool is_shape_input(const OperatorType& type, const Node& node, std::size_t input);

/// Returns the output shapes for use in a graph: each size that depends on data becomes an unknown dimension, the same
/// dimension wherever that size occurs.
[[nodiscard]] std::vector<Shape> without_data_sizes(std::vector<Shape> outputs);

/// Adds a node in the domain graft with every attribute of the operator; the graph then imports the domain.
/// `output_hints` and `before` have the same meaning as in Graph::add_node().
Node* add_operator_node(Graph& graph, const Operator& op, std::vector<Value*> inputs,
                        const std::vector<std::string>& output_hints, Node* before = nullptr);

/// Replaces the attributes of the node with all attributes of the operator.
void write_attributes(Node& node, const Operator& op);

/// Returns whether ONNX has an operator of that name in the domain, which is "" or "ai.onnx" for the standard domain,
/// or ai.onnx.ml.
[[nodiscard]] bool is_standard_operator(std::string_view domain, std::string_view op_type);

/// Returns ONNX's default for an attribute, if it is a number, a list of integers or a string. `opset` matters for
/// Softmax, LogSoftmax, Hardmax and Resize.
[[nodiscard]] std::optional<AttributeValue> default_attribute(std::string_view op_type, std::string_view attribute,
                                                              std::int64_t opset);

}  // namespace graft::onnx

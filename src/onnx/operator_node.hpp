// Between nodes of a graph and Graft's operators.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graft/operator.hpp"
#include "onnx/model.hpp"

namespace graft::onnx {

/// Metadata of nodes. What the layer was in the network that was imported, "Convolution" of Caffe.
inline constexpr std::string_view layer_type_note = "graft.layer_type";
/// The operator that a node of another name stands for.
inline constexpr std::string_view operator_note = "graft.operator";
/// What TensorRT's parser reads which inputs of a plugin node are shape inputs from.
inline constexpr std::string_view shape_input_indices = "tensorrt_plugin_shape_input_indices";
/// Why a node stays as it is where a native layer could take its place.
inline constexpr std::string_view keep_note = "graft.keep";

/// A type and the drop-in through which it was found; drop_in is null for a node under the operator's own name.
struct OperatorMatch {
  const OperatorType* type = nullptr;
  const DropIn* drop_in = nullptr;
  explicit operator bool() const { return type != nullptr; }
};

/// The operator a node stands for: in the domain graft by its name or by its metadata `graft.operator`; of a library of
/// somebody's own by its name in every domain where ONNX has no operator of that name, as TensorRT's parser finds its
/// plugin, unless the node asks for another `plugin_version` or `plugin_namespace`; in graft and in
/// the domains that plugin nodes are written in ("", TRT, trt.plugins ...) by the name (and `plugin_version`, if given)
/// of a plugin that an operator stands in for, unless ONNX itself has an operator of that name in that domain or the
/// node names a `plugin_namespace`. Empty where there is none.
[[nodiscard]] OperatorMatch find_operator_for(const Node& node);

/// The same for a node that has another name or domain than Graft's: one that adopt_drop_ins makes a node of Graft's.
[[nodiscard]] OperatorMatch find_adopted_operator(const Node& node);

/// The operator of Graft that computes what a node of ONNX's own operator does (OperatorType::onnx_form); null where
/// there is none or the node lacks an attribute that it requires. The node itself is none of Graft's.
[[nodiscard]] const OperatorType* find_onnx_operator(const Node& node);

/// The node's inputs in the order of its operator's, null for one that is left out before others; those of other nodes
/// as they are. Throws Error where a node under another name has more or fewer than the plugin of that name, or leaves
/// out one that is required.
[[nodiscard]] std::vector<Value*> operator_inputs(const Node& node);

/// The type that an input which is left out before others would have: that of one which has to have the same. Nothing
/// where that is not known.
[[nodiscard]] std::optional<DType> dtype_left_out(const OperatorType& type, std::span<Value* const> inputs,
                                                  std::size_t port);

/// An input of a type with which its operator has no row of types.
struct RefusedType {
  const Value* input = nullptr;
  std::vector<DType> allowed;  ///< In its place, with the types of the inputs before it.
};
/// The first such input, of inputs in the order of the operator's; nothing where there is none among those whose types
/// are known. `cast`, if given, says what a Cast before the node makes of a type.
[[nodiscard]] std::optional<RefusedType> refused_type(const OperatorType& type, std::span<Value* const> inputs,
                                                      ElementType (*cast)(ElementType) = nullptr);

/// A tensor without elements: what stands for an input that is left out before others.
Value* add_left_out(Graph& graph, const OperatorType& type, std::size_t port, ElementType element);

/// The operator with the node's attributes, checked. Null where find_operator_for finds none; throws Error naming node
/// and attribute for one that is unknown, ill-typed, out of range or required and missing.
[[nodiscard]] std::unique_ptr<Operator> make_operator(const Node& node);

/// Throws Error naming the node where its operator refuses the shapes that it is given: as many weights as are needed,
/// windows that fit. Nothing happens for another node, where a type or a size is not known, and for types that the
/// operator does not take.
void check_operator(const Node& node);

/// Whether this input of a node is one whose values infer_shapes wants in the place of its shape.
[[nodiscard]] bool is_shape_input(const OperatorType& type, const Node& node, std::size_t input);

/// Shapes of outputs as a graph has them: each size that depends on data is a dimension that is not known, the same one
/// wherever it stands.
[[nodiscard]] std::vector<Shape> without_data_sizes(std::vector<Shape> outputs);

/// A node in the domain graft with every attribute of the operator written; the graph imports the domain.
Node* add_operator_node(Graph& graph, const Operator& op, std::vector<Value*> inputs,
                        const std::vector<std::string>& output_hints, Node* before = nullptr);

/// Writes every attribute of the operator on the node, in place of what it had.
void write_attributes(Node& node, const Operator& op);

/// Whether ONNX has an operator of that name ("" and "ai.onnx" are the standard domain; also ai.onnx.ml).
[[nodiscard]] bool is_standard_operator(std::string_view domain, std::string_view op_type);

/// The default that ONNX gives to an attribute, where it is a number, a list or a text; `opset` matters for Softmax.
[[nodiscard]] std::optional<AttributeValue> default_attribute(std::string_view op_type, std::string_view attribute,
                                                              std::int64_t opset);

}  // namespace graft::onnx

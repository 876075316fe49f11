// Model-local functions: inlining, and the functions that Graft's nodes carry.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graft/operator/operator.hpp"
#include "onnx/body_types.hpp"
#include "onnx/model.hpp"
#include "onnx/operator_node.hpp"

namespace graft::onnx {

/// Options of inline_functions().
struct InlineOptions {
  std::function<bool(const FunctionKey&)> which = [](const FunctionKey&) { return true; };
  std::size_t max_nodes = 1'000'000;
  bool note_calls = false;  ///< Whether to record the call on each inlined node, under call_note.
};
/// The metadata key for the id (NodeRef) of the inlined call. For nested calls it is the id of the outermost call.
inline constexpr std::string_view call_note = "graft.call";
/// Replaces function calls with the bodies of the functions, also inside subgraphs and other functions; `options.which`
/// selects the functions. Values of the main graph keep their names; values of a body get the call's name as a prefix.
/// Functions that are no longer called are removed. Opsets are raised if an operator of a body changed between the
/// opset of the function and that of the model. Throws Error for recursion, for an import of another domain in two
/// versions, and if the result has more than `max_nodes` nodes or many times as many nodes as the file. Returns the
/// number of calls that were inlined.
std::size_t inline_functions(Model& model, const InlineOptions& options = {});

/// Replaces one call with the body of a function, without comparing opsets. Returns the new nodes.
std::vector<Node*> inline_call(Node& call, const FunctionDefinition& function);

/// Throws Error naming a function that calls itself, directly or through other functions.
void check_function_calls(const Model& model);

/// Removes the functions that no node calls, directly or through another function. Returns the number of removed
/// functions.
std::size_t remove_unused_functions(Model& model);

/// Parses nodes from text, one per line, similar to ONNX's own text form:
///     y = LeakyRelu<alpha=@alpha>(x)        attribute reference
///     a, b = Split<axis=1>(x, sizes)        several outputs
///     r = Resize<mode="linear">(x, _, s)    absent input
///     z = Constant<value=int8(0)>()         typed scalar; lists: value=int64([1, 2])
///     c = Cast<to=float>(x)                 the name of an element type stands for its code
/// Attribute values: 1 (int), 1.0 or inf (float), "text", [1, 2] (ints), [1.0] (floats), typed tensors, @reference.
/// `attribute_type` returns the type of a referenced attribute. Throws Error naming line and column. The graph's inputs
/// must exist; the values named in `outputs` become the graph's outputs.
void parse_nodes(Graph& graph, std::string_view text, const std::vector<std::string>& outputs,
                 const std::function<std::optional<AttributeType>(std::string_view)>& attribute_type);

/// Parses the text of an operator's function or native form (see make_native_form()), with the operator's attributes
/// and outputs; the inputs must be in `graph`. `what` names the text in messages. Throws Error as parse_nodes() does,
/// and if opset 17 has no such operator, attribute or number of inputs. If `row`, a combination of types that the
/// operator accepts, is given, the inputs must have these types. The types of all lines are then inferred, and a line
/// that does not accept its types is an Error too.
void parse_body(Graph& graph, const OperatorType& type, const std::string& what, std::string_view text,
                const std::optional<FollowedRow>& row = std::nullopt);

/// Returns the properties of a node on which the function of its operator may depend. An unknown type of the first
/// input is returned as f32, and an unknown rank as -1.
[[nodiscard]] FunctionInputs function_inputs(const Node& node);

/// function_of() returns the ONNX function that the operator's definition has for these inputs, and native_form_of()
/// the text of its native form (see make_native_form()). They return nothing if the definition has none, and throw
/// body_error() if the definition fails.
[[nodiscard]] std::optional<Function> function_of(const Operator& op, const FunctionInputs& inputs);
[[nodiscard]] std::optional<std::string> native_form_of(const Operator& op, const FunctionInputs& inputs);

/// Returns the function of an operator with these attributes for these inputs, or nothing if the operator has none. The
/// function imports ai.onnx in version `opset`, at least 17; its text is written for 17 and raised to `opset`. Throws
/// Error naming operator, line and column for a text that cannot be parsed or that ONNX's schemas refuse in either
/// opset. For an operator of a library the error also names the library, and counts as bad input.
[[nodiscard]] std::optional<FunctionDefinition> make_function(const Operator& op, const FunctionInputs& inputs,
                                                              std::int64_t opset = 17);

/// Returns the native form of an operator: a function body with a single native layer that computes the operator
/// exactly. Returns nothing if the operator has none for these inputs. Throws as make_function() does.
[[nodiscard]] std::optional<FunctionDefinition> make_native_form(const Operator& op, const FunctionInputs& inputs,
                                                                 std::int64_t opset = 17);

/// Returns the lowest opset >= 17 whose schemas accept every type used in the function body; 17 if the operator has no
/// function or does not accept the type of its first input.
[[nodiscard]] std::int64_t first_opset_of_function(const Operator& op, const FunctionInputs& inputs);

/// Each function parses a text of an operator, the result of function_of() or of native_form_of(), for a node with
/// `input_count` inputs, and raises it from opset 17 to `opset`. Throws as make_function() does.
[[nodiscard]] FunctionDefinition parse_function(const OperatorType& type, std::size_t input_count,
                                                const Function& function, std::int64_t opset);
[[nodiscard]] FunctionDefinition parse_native_form(const OperatorType& type, std::size_t input_count,
                                                   std::string_view text, std::int64_t opset);

/// Throws Error if the types inside a function or native form are wrong (type_fault()) for `input_count` inputs with
/// the types of `row`, one of the combinations of types that the operator accepts. The message names these types.
void check_types(const OperatorType& type, std::size_t input_count, const TypeRow& row, const Function& function);
void check_types(const OperatorType& type, std::size_t input_count, const TypeRow& row, std::string_view native_form);

/// Returns an error about the text of an operator. It names the operator and the library whose author must correct the
/// text. For Graft's own operators it is an internal error.
[[nodiscard]] Error body_error(const OperatorType& type, const std::string& message);

/// Adds the model-local function of every node of a Graft operator, and writes every attribute on the node; the
/// attributes of plugin nodes (`plugin_version` ...) are removed. If the function's name differs from the operator's,
/// the node takes the function's name, and its metadata `graft.operator` contains the operator's name. Nodes without a
/// name get one. Nodes under the names of other libraries' plugins are replaced first (adopt_drop_ins()). Runs
/// infer_shapes if the type of a node's first input is unknown. Raises the opset to 17, or to the one that a node in
/// bf16 needs, and ir_version to 8 (10 with such an opset) if they are lower, which invalidates pointers into the
/// model. Returns the nodes whose operator has no function for its input type.
std::vector<Node*> attach_functions(Model& model);

/// Reverses attach_functions() for TensorRT's parser, which then looks for plugins: nodes get the operator's name, all
/// attributes, `plugin_version` and `plugin_namespace`, and functions of the domain graft are removed. Nodes under the
/// names of other libraries' plugins are replaced first (adopt_drop_ins()), so that TensorRT builds nodes with Graft's
/// names. Nodes of operators for which `has_plugin` returns false keep their functions; null stands for a function that
/// always returns true. Returns the number of nodes that were changed.
std::size_t detach_functions(Model& model, const std::function<bool(const OperatorType&)>& has_plugin = nullptr);

/// Replaces each node under the name of another library's plugin (such as LReLU_TRT) with a node of the Graft operator
/// that computes the same. Returns the number of replaced nodes. Runs infer_shapes if a node leaves out an input before
/// a later input and the type of that input is unknown. Raises the opset to 17 if it is lower and a node needs nodes
/// that compute its outputs (PluginForm::outputs), which invalidates pointers into the model.
std::size_t adopt_drop_ins(Model& model);

/// Arranges the inputs of a node under the name of another library's plugin in the order of the Graft operator that
/// replaces the plugin. An input that is left out before other inputs becomes a tensor without elements; throws Error
/// if its type is unknown. The caller must then rename the node, because its inputs no longer have the order that the
/// old name implies.
void arrange_inputs(Node& node);

/// Replaces nodes of standard ONNX operators with nodes of equivalent Graft operators, for a TensorRT that has no layer
/// for them. Plugins do not accept booleans and u8, so a Cast to i32 is added before such an input. A Cast to f32 is
/// added before an input in f64, which TensorRT computes in f32, if no output is in f64. An input that is left out
/// before other inputs becomes a tensor without elements, unless it may be an attribute. A node is kept if the type of
/// an input is unknown or not accepted by the operator. Runs infer_shapes if there is a candidate. Returns the number
/// of replaced nodes.
std::size_t adopt_onnx_operators(Model& model);
/// Returns whether adopt_onnx_operators() would replace this node, whose types must be known.
[[nodiscard]] bool is_adopted_for_tensorrt(const Node& node);
/// Returns the input whose type is the only reason why adopt_onnx_operators() does not replace the node; nothing if it
/// replaces the node, or if there is another reason.
[[nodiscard]] std::optional<RefusedType> type_not_adopted(const Node& node);

/// Replaces a Graft node with the native layer that computes it exactly (see make_native_form()). Returns false and
/// changes nothing if there is no such layer for this node.
bool replace_with_native_form(Node& node);
/// Replaces a Graft node with the standard operators of its function. Returns false and changes nothing if the operator
/// has no function for this node.
bool replace_with_function_body(Node& node);

}  // namespace graft::onnx

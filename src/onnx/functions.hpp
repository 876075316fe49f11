// Model-local functions: inlining, and the functions that Graft's nodes carry.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graft/operator.hpp"
#include "onnx/body_types.hpp"
#include "onnx/model.hpp"
#include "onnx/operator_node.hpp"

namespace graft::onnx {

/// Puts the bodies of functions in the place of their calls, also inside sub-graphs and other functions; `which`
/// chooses. The main graph's value names stay; those of a body get the call's name in front. Functions that nothing
/// calls any more are removed. A function that imports another version of an operator set than the model throws Error,
/// unless none of the operators it uses changed between the two. So do recursion and more than `max_nodes` nodes, or
/// many times those in the file.
/// Returns the number of calls that were inlined.
struct InlineOptions {
  std::function<bool(const FunctionKey&)> which = [](const FunctionKey&) { return true; };
  std::size_t max_nodes = 1'000'000;
  bool note_calls = false;  ///< Each node of a body gets call_note.
};
/// Metadata of nodes: the id (NodeRef) of the call in the model that was inlined, the outermost of several.
inline constexpr std::string_view call_note = "graft.call";
std::size_t inline_functions(Model& model, const InlineOptions& options = {});

/// Puts a body in the place of one call, which is removed; operator sets are not compared. Returns the new nodes.
std::vector<Node*> inline_call(Node& call, const FunctionDefinition& function);

/// Throws Error where functions call themselves, directly or round about, naming one of them.
void check_function_calls(const Model& model);

/// Removes the functions that no node calls, directly or through another function. Returns how many.
std::size_t remove_unused_functions(Model& model);

/// Nodes as text, one a line, in the manner of ONNX's own text form:
///   y = LeakyRelu<alpha=@alpha>(x)        attribute reference
///   a, b = Split<axis=1>(x, sizes)        several outputs
///   r = Resize<mode="linear">(x, _, s)    absent input
///   z = Constant<value=int8(0)>()         typed scalar; lists: value=int64([1, 2])
///   c = Cast<to=float>(x)                 the name of an element type stands for its code
/// Attribute values: 1 (int), 1.0 or inf (float), "text", [1, 2] (ints), [1.0] (floats), typed tensors, @reference.
/// `attribute_type` gives the type of a referenced attribute. Throws Error naming line and column.
/// The graph's inputs must be there; the outputs named in `outputs` become the graph's outputs.
void parse_nodes(Graph& graph, std::string_view text, const std::vector<std::string>& outputs,
                 const std::function<std::optional<AttributeType>(std::string_view)>& attribute_type);

/// The same for the text of an operator's function or native form, with the operator's attributes and outputs; the
/// inputs must be there. Throws Error also where ONNX's schemas, in operator set 17, have no such node: an operator,
/// attribute or number of inputs. `what` names the text in messages. With `row`, whose types the inputs then have, also
/// where the types of a line are wrong with those.
void parse_body(Graph& graph, const OperatorType& type, const std::string& what, std::string_view text,
                const std::optional<FollowedRow>& row = std::nullopt);

/// What a function may depend on, of a node of an operator; f32 and no rank where its first input has no known type.
[[nodiscard]] FunctionInputs function_inputs(const Node& node);

/// What the operator says of itself. Throws body_error where its definition throws an exception.
[[nodiscard]] std::optional<Function> function_of(const Operator& op, const FunctionInputs& inputs);
[[nodiscard]] std::optional<std::string> native_form_of(const Operator& op, const FunctionInputs& inputs);

/// The function of an operator with these attributes for these inputs, as the operator's text says. Nothing where it
/// has none. Its import of ai.onnx is `opset`, at least 17; the text, which is in 17, is raised to it. Throws Error
/// naming operator, line and column for a text that cannot be read or that ONNX's schemas refuse in either operator
/// set; of an operator of a library it names the library too, and is bad input.
[[nodiscard]] std::optional<FunctionDefinition> make_function(const Operator& op, const FunctionInputs& inputs,
                                                              std::int64_t opset = 17);

/// The same of the operator's native form.
[[nodiscard]] std::optional<FunctionDefinition> make_native_form(const Operator& op, const FunctionInputs& inputs,
                                                                 std::int64_t opset = 17);

/// The first operator set from 17 on in which ONNX takes the types of the lines of the operator's function; 17 where it
/// has no function, or not this type of its first input.
[[nodiscard]] std::int64_t first_opset_of_function(const Operator& op, const FunctionInputs& inputs);

/// The same of what the operator said of itself.
[[nodiscard]] FunctionDefinition parse_function(const OperatorType& type, std::size_t input_count,
                                                const Function& function, std::int64_t opset);
[[nodiscard]] FunctionDefinition parse_native_form(const OperatorType& type, std::size_t input_count,
                                                   std::string_view text, std::int64_t opset);

/// Throws Error where the types of these texts are wrong for so many inputs of this row of types (type_fault): it names
/// the row as well.
void check_types(const OperatorType& type, std::size_t input_count, const TypeRow& row, const Function& function);
void check_types(const OperatorType& type, std::size_t input_count, const TypeRow& row, std::string_view native_form);

/// What is wrong with a text of an operator, for messages: it names the operator, and the library that it came with,
/// which somebody else has to correct; of Graft's own operators it is a defect.
[[nodiscard]] Error body_error(const OperatorType& type, const std::string& message);

/// Gives every node of a Graft operator its model-local function, and writes every attribute on the node; plugin
/// attributes are taken off. Where the function's name differs from the operator's, the node takes that name and its
/// metadata `graft.operator` keeps the operator's. Nodes without a name get one. Nodes under drop-in names are adopted
/// first. Runs infer_shapes if a node's input type is unknown. Raises ir_version to 8 and the operator set to 17 where
/// they are lower, which makes pointers into the model invalid. Returns the nodes whose operator has no function for
/// its input type.
std::vector<Node*> attach_functions(Model& model);

/// The inverse, for TensorRT's parser, which then looks for plugins: nodes carry the operator's name, all attributes,
/// `plugin_version` and `plugin_namespace`; functions of the domain graft are removed. Nodes under drop-in names are
/// adopted first, so that what TensorRT builds holds Graft's names. Nodes of operators for which `has_plugin` returns
/// false keep their functions. Returns the number of nodes without a function.
std::size_t detach_functions(Model& model, const std::function<bool(const OperatorType&)>& has_plugin = nullptr);

/// Turns nodes under drop-in names (LReLU_TRT) into nodes of the operators that stand in for them. Returns how many.
/// Runs infer_shapes where a node leaves out an input before others and the type that it would have is unknown.
std::size_t adopt_drop_ins(Model& model);

/// Puts the inputs of a node under a drop-in name into the order of its operator's. What is left out before others
/// becomes a tensor without elements; throws Error where the type that it would have is not known. The node has to get
/// another name then, by which its inputs are in that order.
void arrange_inputs(Node& node);

/// Turns nodes of standard ONNX operators into nodes of the operators of Graft that compute the same, for a TensorRT
/// that has no layer for them. A plugin takes no booleans, so a Cast comes before one that has such an input; so it
/// does for f64, which TensorRT computes in f32, where the outputs are of other types. What is left out before another
/// input becomes a tensor without elements, unless it may be an attribute. A node stays where an input's type is not
/// known or none that the operator takes. Runs infer_shapes where there is such a node. Returns how many nodes there
/// were.
std::size_t adopt_onnx_operators(Model& model);
/// Whether it does so with a node whose types are known.
[[nodiscard]] bool is_adopted_for_tensorrt(const Node& node);
/// The input whose type alone keeps it from doing so; nothing where there is none, or something else does as well.
[[nodiscard]] std::optional<RefusedType> type_not_adopted(const Node& node);

/// Replaces a Graft node by its operator's native_form. False, and nothing is changed, where it has none.
bool replace_with_native_form(Node& node);
/// Replaces a Graft node by the standard operators of its function. False, and nothing is changed, where it has none.
bool replace_with_function_body(Node& node);

}  // namespace graft::onnx

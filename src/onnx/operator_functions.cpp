// Attaches functions to Graft's nodes, and replaces Graft's nodes with plugins or native layers.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "core/plugin_form.hpp"
#include "graft/operator/registry.hpp"
#include "onnx/functions.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/opset.hpp"
#include "onnx/schema.hpp"
#include "onnx/shape_inference.hpp"
#include "onnx/text.hpp"

namespace graft::onnx {
namespace {

/// Parses the text of an operator. `what` names the text in messages, such as "function BetaSwish" or "native form".
FunctionDefinition parse_definition(const OperatorType& type, std::size_t input_count, const std::string& name,
                                    const std::string& what, std::string_view text, std::int64_t opset) {
  FunctionDefinition function;
  function.key = {std::string(onnx_domain), name, ""};
  function.doc = std::string(type.doc);
  for (const AttributeInfo& info : type.attributes) function.attributes.emplace_back(info.name);
  Graph& body = *function.body;
  body.opset_imports[""] = working_opset;
  for (std::size_t i = 0; i < std::min(input_count, type.most_inputs()); ++i) body.add_input(type.input_name(i));
  const std::int64_t raised = std::max(opset, working_opset);
  try {
    parse_body(body, type, what, text);
    raise_graph_opset(body, raised, true);
  } catch (const Error& error) {
    throw body_error(type, error.what());
  }
  for (const Node* node : body.nodes()) {
    if (const auto fault = schema_fault(*node, raised)) {
      throw body_error(type, fmt::format("{} in operator set {}: {}: {}", what, raised, describe(*node), *fault));
    }
  }
  return function;
}

/// Returns a phrase for the types of `count` inputs in `row`, a combination of types that the operator accepts, such as
/// "in f16", or "with x in f16, index in i32".
std::string row_text(const OperatorType& type, const TypeRow& row, std::size_t count) {
  std::vector<std::string> each;
  bool are_same = true;
  for (std::size_t i = 0; i < count; ++i) {
    const DType dtype = type.format_of(row, count, i).dtype;
    are_same = are_same && dtype == row.formats[0].dtype;
    each.push_back(fmt::format("{} in {}", type.input_name(i), to_string(dtype)));
  }
  if (are_same) return fmt::format("in {}", to_string(row.formats[0].dtype));
  return fmt::format("with {}", fmt::join(each, ", "));
}

constexpr auto native_form_words = "native form";

std::string words_of(const Function& function) { return "function " + function.name; }

void check_types(const OperatorType& type, std::size_t count, const TypeRow& row, const std::string& what,
                 std::string_view text, BodyUse use) {
  const std::string words = row_text(type, row, count);
  FollowedRow followed{.words = words, .use = use};
  Graph body;
  body.opset_imports[""] = working_opset;
  for (std::size_t i = 0; i < count; ++i) {
    const ElementType element_type = to_element_type(type.format_of(row, count, i).dtype);
    body.add_input(type.input_name(i))->type = element_type;
    followed.oldest_opset = std::max(followed.oldest_opset, oldest_opset_with(element_type));
  }
  try {
    parse_body(body, type, what, text, followed);
  } catch (const Error& error) {
    throw body_error(type, error.what());
  }
  for (std::size_t i = 0; i < body.outputs().size(); ++i) {
    const Value& output = *body.outputs()[i];
    const ElementType wanted = to_element_type(type.format_of(row, count, count + i).dtype);
    if (type.ports[type.input_count() + i].is_size() || !output.type || *output.type == wanted) continue;
    throw body_error(type, fmt::format("{}: {}: its output '{}' is {}, and the operator's types require {}: cast it in "
                                       "its last line, as in {} = Cast<to={}>({}_before)",
                                       what, words, output.name, to_string(*output.type), to_string(wanted),
                                       output.name, to_string(wanted), output.name));
  }
}

/// Writes every attribute of the operator on the node, and adds the outputs that the node leaves out. TensorRT's parser
/// and ONNX Runtime require as many outputs as a plugin or a function has, whereas a model may leave out the last one,
/// such as a size that nothing reads.
void write_whole(Node& node, const Operator& op) {
  write_attributes(node, op);
  const OperatorType& type = op.type();
  const std::string stem = node.output() == nullptr ? node.name : node.output()->name;
  while (node.outputs.size() < type.output_count()) {
    const Port& port = type.ports[type.input_count() + node.outputs.size()];
    Value* value = node.graph->add_output_to(node, fmt::format("{}_{}", stem, port.name));
    if (!port.is_size()) continue;
    value->type = ElementType::i64;
    value->shape = Shape{};
  }
}

bool takes(const OperatorType& type, std::size_t port, DType dtype) {
  return std::any_of(type.type_rows.begin(), type.type_rows.end(),
                     [&](const TypeRow& row) { return row.formats[port] == Format(dtype); });
}

/// Returns the value of an input that may also be an attribute: the default if the node omits the input, or the number
/// if the input is a constant with one element. Returns nothing for any other input.
std::optional<AttributeValue> value_for_attribute(const Value* input, const AttributeInfo& info) {
  if (input == nullptr) return info.default_value;
  const auto constant = input->constant();
  if (!constant || constant->element_count() != 1) return std::nullopt;
  std::optional<AttributeValue> value;
  if (info.type == AttributeType::integer) {
    if (const auto numbers = constant->ints()) value = numbers->front();
  } else if (info.type == AttributeType::float_number) {
    if (const auto number = constant->scalar()) value = static_cast<float>(*number);
  }
  return value && check_attribute(info, *value).ok() ? value : std::nullopt;
}

/// The inputs and attributes of the Graft operator that computes the same as a standard ONNX node. An ONNX input that
/// is only an attribute of the operator must be constant. The last input may be optional and also an attribute of the
/// operator. If it is constant, it becomes the attribute, because the size of the outputs is then limited when memory
/// is allocated.
struct Adoption {
  std::vector<Value*> inputs;
  std::vector<DType> dtypes;  ///< The types of the inputs; i32 replaces booleans and u8, which plugins do not support.
  std::vector<std::pair<std::string_view, AttributeValue>> attributes;
};

/// Assigns the inputs of the node to inputs and attributes of the operator, as OnnxForm::inputs lists them. Returns
/// false if the operator has neither for an input, or if an attribute is not a constant.
bool sort_inputs(const Node& node, const OperatorType& type, Adoption& adoption) {
  const std::vector<std::string_view>& names = type.onnx_form->inputs;
  if (node.inputs.size() > (names.empty() ? type.most_inputs() : names.size())) return false;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (names.empty() || type.find_input(names[i])) {
      adoption.inputs.push_back(node.inputs[i]);
      continue;
    }
    const AttributeInfo* info = type.find_attribute(names[i]);
    const auto value = info == nullptr ? std::nullopt : value_for_attribute(node.inputs[i], *info);
    if (!value) return false;
    adoption.attributes.emplace_back(names[i], *value);
  }
  return true;
}

/// Returns whether the operator must not replace this node: the node has an attribute that the operator refuses, or
/// TensorRT has a layer for the node.
bool is_for_others(const Node& node, const OperatorType& type,
                   std::span<const std::pair<std::string_view, AttributeValue>> attributes) {
  std::vector<NamedAttribute> given;
  for (const auto& [name, attribute] : node.attributes) {
    const auto value = attribute.value();
    if (!value) return true;
    given.push_back({name, *value});
  }
  for (const auto& [name, value] : attributes) given.push_back({name, value});
  const std::unique_ptr<Operator> op = type.create();
  return !op->set(given).ok() || native_form_of(*op, function_inputs(node)).has_value();
}

using TypeAfterCast = ElementType (*)(ElementType);

/// Returns the type of an input after the Cast that is added before a plugin: i32 for booleans and u8, which plugins do
/// not accept, and `type` itself otherwise.
ElementType cast_to_plugin(ElementType type) {
  return type == ElementType::boolean || type == ElementType::u8 ? ElementType::i32 : type;
}

/// Returns the type of an input after the Cast, for a node without outputs in f64: like cast_to_plugin, but f64 becomes
/// f32, in which TensorRT computes it.
ElementType cast_doubles_to_plugin(ElementType type) {
  return type == ElementType::f64 ? ElementType::f32 : cast_to_plugin(type);
}

TypeAfterCast cast_before(const Node& node) {
  const bool makes_doubles = std::any_of(node.outputs.begin(), node.outputs.end(), [](const Value* output) {
    return output != nullptr && output->type == ElementType::f64;
  });
  return makes_doubles ? cast_to_plugin : cast_doubles_to_plugin;
}

/// Returns the inputs and attributes for the operator; Adoption::dtypes stays empty. Returns nothing if the node has an
/// attribute that the operator lacks, such as the `plugin_version` of another plugin, or if TensorRT has a layer that
/// computes the node.
std::optional<Adoption> untyped_adoption_of(const Node& node, const OperatorType& type) {
  for (const auto& attribute : node.attributes) {
    if (type.find_attribute(attribute.first) == nullptr) return std::nullopt;
  }
  Adoption adoption;
  std::vector<Value*>& inputs = adoption.inputs;
  if (!sort_inputs(node, type, adoption)) return std::nullopt;
  for (; inputs.size() > type.required_input_count(); inputs.pop_back()) {
    const std::string_view name = type.ports[type.port_of(inputs.size(), inputs.size() - 1)].name;
    const AttributeInfo* info = type.find_attribute(name);
    const auto value = info == nullptr ? std::nullopt : value_for_attribute(inputs.back(), *info);
    if (!value) break;
    adoption.attributes.emplace_back(name, *value);
  }
  const std::size_t count = inputs.size();
  if (count < type.required_input_count() || is_for_others(node, type, adoption.attributes)) return std::nullopt;
  return adoption;
}

/// Returns the inputs, their types and the attributes for the operator. Returns nothing where untyped_adoption_of()
/// does, and if the type of an input that does not become an attribute is unknown or not accepted by the operator.
std::optional<Adoption> adoption_of(const Node& node, const OperatorType& type) {
  std::optional<Adoption> adoption = untyped_adoption_of(node, type);
  if (!adoption) return std::nullopt;
  const std::vector<Value*>& inputs = adoption->inputs;
  const TypeAfterCast cast = cast_before(node);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Value* input = inputs[i];
    const std::size_t at = type.port_of(inputs.size(), i);
    const Port& port = type.ports[at];
    const bool is_left_out = input == nullptr && port.is_optional() && !type.find_attribute(port.name);
    std::optional<DType> dtype = is_left_out ? dtype_left_out(type, inputs, i) : std::nullopt;
    if (input != nullptr && input->type) dtype = to_dtype(cast(*input->type));
    if (!dtype || !takes(type, at, *dtype)) return std::nullopt;
    adoption->dtypes.push_back(*dtype);
  }
  return type.output_dtypes(adoption->dtypes) ? std::move(adoption) : std::nullopt;
}

/// Returns whether the nodes, links and attributes of two functions are equal, so that two nodes may share one
/// function.
bool same_body(const FunctionDefinition& a, const FunctionDefinition& b) {
  return to_text(*a.body) == to_text(*b.body);
}

using MakeBody = std::optional<FunctionDefinition> (*)(const Operator& op, const FunctionInputs& inputs,
                                                       std::int64_t opset);

bool replace_by(Node& node, MakeBody make) {
  const auto op = make_operator(node);
  if (op == nullptr) return false;
  std::int64_t opset = node.graph->opset();
  const auto body = make(*op, function_inputs(node), opset);
  if (!body) return false;
  if (opset == 0) opset = node.graph->root().opset_imports[""] = working_opset;
  if (opset < working_opset) {
    throw Error(Error::Kind::internal,
                fmt::format("{}: the model is in operator set {}; call upgrade_opset first", describe(node), opset));
  }
  arrange_inputs(node);
  write_attributes(node, *op);
  inline_call(node, *body);
  return true;
}

}  // namespace

FunctionInputs function_inputs(const Node& node) {
  const Value* x = node.input(0);
  FunctionInputs inputs{.dtype = DType::f32, .count = operator_inputs(node).size(), .rank = -1};
  if (x == nullptr) return inputs;
  if (x->type) inputs.dtype = to_dtype(*x->type).value_or(DType::f32);
  if (x->shape) inputs.rank = static_cast<int>(x->shape->size());
  return inputs;
}

std::optional<Function> function_of(const Operator& op, const FunctionInputs& inputs) {
  std::optional<Function> function;
  if (Status status = op.function(inputs, function); !status.ok()) throw body_error(op.type(), status.message());
  if (function && function->name.empty()) {
    throw body_error(op.type(),
                     "its `function` returns a Function without a name: set its `name` to the operator's `name`");
  }
  return function;
}

std::optional<std::string> native_form_of(const Operator& op, const FunctionInputs& inputs) {
  std::optional<std::string> form;
  if (Status status = op.native_form(inputs, form); !status.ok()) throw body_error(op.type(), status.message());
  return form;
}

std::optional<FunctionDefinition> make_function(const Operator& op, const FunctionInputs& inputs, std::int64_t opset) {
  const auto function = function_of(op, inputs);
  if (!function) return std::nullopt;
  return parse_function(op.type(), inputs.count, *function, opset);
}

std::optional<FunctionDefinition> make_native_form(const Operator& op, const FunctionInputs& inputs,
                                                   std::int64_t opset) {
  const auto text = native_form_of(op, inputs);
  if (!text) return std::nullopt;
  return parse_native_form(op.type(), inputs.count, *text, opset);
}

std::int64_t first_opset_of_function(const Operator& op, const FunctionInputs& inputs) {
  const OperatorType& type = op.type();
  const auto row = std::find_if(type.type_rows.begin(), type.type_rows.end(),
                                [&](const TypeRow& each) { return each.formats[0].dtype == inputs.dtype; });
  const auto function = row == type.type_rows.end() ? std::nullopt : make_function(op, inputs);
  if (!function) return working_opset;
  Graph& body = *function->body;
  for (std::size_t i = 0; i < body.inputs().size(); ++i) {
    body.inputs()[i]->type = to_element_type(type.format_of(*row, inputs.count, i).dtype);
  }
  std::int64_t first = working_opset;
  for (Node* line : body.nodes()) {
    first = std::max(first, first_opset_for_types(*line));
    static_cast<void>(type_fault(*line, {}));  // Infers the types of the outputs.
  }
  return first;
}

FunctionDefinition parse_function(const OperatorType& type, std::size_t input_count, const Function& function,
                                  std::int64_t opset) {
  return parse_definition(type, input_count, function.name, words_of(function), function.body, opset);
}

FunctionDefinition parse_native_form(const OperatorType& type, std::size_t input_count, std::string_view text,
                                     std::int64_t opset) {
  return parse_definition(type, input_count, "native_form", native_form_words, text, opset);
}

void check_types(const OperatorType& type, std::size_t input_count, const TypeRow& row, const Function& function) {
  check_types(type, input_count, row, words_of(function), function.body, BodyUse::function);
}

void check_types(const OperatorType& type, std::size_t input_count, const TypeRow& row, std::string_view native_form) {
  check_types(type, input_count, row, native_form_words, native_form, BodyUse::layers);
}

Error body_error(const OperatorType& type, const std::string& message) {
  const OperatorLibrary* library = library_of(type);
  if (library == nullptr) return {Error::Kind::internal, fmt::format("operator {}: {}", type.name, message)};
  return Error(fmt::format("library of operators {}: operator {}: {}", library->file, type.name, message));
}

void arrange_inputs(Node& node) {
  const std::vector<Value*> inputs = operator_inputs(node);
  if (inputs == node.inputs) return;
  const OperatorType& type = *find_operator_for(node).type;
  Graph& graph = *node.graph;
  std::vector<std::optional<DType>> left_out(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] != nullptr) continue;
    left_out[i] = dtype_left_out(type, inputs, i);
    if (left_out[i]) continue;
    throw Error(
        fmt::format("{}: the type of its first input is unknown, but the omitted input `{}` must have the same type; "
                    "declare the types of the model's inputs",
                    describe(node), type.ports[i].name));
  }
  while (!node.inputs.empty()) graph.remove_last_input(node);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Value* input = left_out[i] ? add_left_out(graph, type, i, to_element_type(*left_out[i])) : inputs[i];
    graph.add_input_to(node, input);
  }
}

namespace {

/// Replaces a node under a plugin's name with the operator, and with the nodes that compute the outputs of the plugin
/// from those of the operator.
void replace_with_outputs(Node& node, const PluginForm& form, const Operator& op) {
  arrange_inputs(node);
  FunctionDefinition translation;
  Graph& body = *translation.body;
  body.opset_imports[""] = working_opset;
  std::vector<Value*> inputs;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) inputs.push_back(body.add_input(op.type().input_name(i)));
  std::vector<std::string> names;
  for (const Port& port : op.type().ports) {
    if (port.is_output()) names.emplace_back(port.name);
  }
  add_operator_node(body, op, inputs, names);
  std::string text;
  std::vector<std::string> outputs;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    text += std::string(form.outputs[i]) + "\n";
    outputs.push_back(fmt::format("y{}", i));
  }
  parse_nodes(body, text, outputs, [](std::string_view) { return std::nullopt; });
  inline_call(node, translation);
}

}  // namespace

std::size_t adopt_drop_ins(Model& model) {
  bool types_known = true;
  bool has_outputs = false;
  model.graph().for_each_node([&](const Node& node) {
    const OperatorMatch match = find_adopted_operator(node);
    if (!match) return;
    has_outputs = has_outputs || (match.drop_in != nullptr && has_own_outputs(match.drop_in->plugin_name));
    const std::vector<Value*> inputs = operator_inputs(node);
    const bool leaves_out = std::find(inputs.begin(), inputs.end(), nullptr) != inputs.end();
    if (leaves_out && inputs.front() != nullptr && !inputs.front()->type) types_known = false;
  });
  if (!types_known) infer_shapes(model);
  if (has_outputs && model.graph().opset() == 0) model.graph().opset_imports[""] = working_opset;
  if (has_outputs) upgrade_opset(model);
  std::vector<Node*> found;
  model.graph().for_each_node([&](Node& node) {
    if (find_adopted_operator(node)) found.push_back(&node);
  });
  for (Node* each : found) {
    Node& node = *each;
    const OperatorMatch match = find_adopted_operator(node);
    const auto op = make_operator(node);
    node.graph->root().opset_imports.emplace(std::string(onnx_domain), 1);
    if (match.drop_in != nullptr && has_own_outputs(match.drop_in->plugin_name)) {
      check_operator(node);
      replace_with_outputs(node, *find_plugin_form(match.drop_in->plugin_name), *op);
      continue;
    }
    arrange_inputs(node);
    node.op_type = std::string(match.type->name);
    node.domain = std::string(onnx_domain);
    write_attributes(node, *op);
  }
  return found.size();
}

std::vector<Node*> attach_functions(Model& model) {
  adopt_drop_ins(model);
  std::size_t graft_nodes = 0;
  bool types_known = true;
  model.graph().for_each_node([&](Node& node) {
    if (node.domain != onnx_domain || !find_operator_for(node)) return;
    ++graft_nodes;
    types_known = types_known && node.input(0) != nullptr && node.input(0)->type.has_value();
  });
  if (graft_nodes == 0) return {};
  if (!types_known) infer_shapes(model);
  if (model.graph().opset() == 0) model.graph().opset_imports[""] = working_opset;
  std::int64_t opset = working_opset;
  model.graph().for_each_node([&](Node& node) {
    const auto op = node.domain == onnx_domain ? make_operator(node) : nullptr;
    if (op == nullptr) return;
    const FunctionInputs inputs = function_inputs(node);
    if (inputs.dtype == DType::bf16) opset = std::max(opset, first_opset_of_function(*op, inputs));
  });
  upgrade_opset(model, opset);
  model.graph().opset_imports.emplace(std::string(onnx_domain), 1);
  model.ir_version = std::max<std::int64_t>(model.ir_version, opset > working_opset ? bf16_ir_version : 8);

  // TensorRT's parser names a node without a name after its output, and refuses the model if the body of a function has
  // an output of that name.
  model.graph().for_each_node([](Node& node) {
    if (node.name.empty() && node.output() != nullptr) node.name = node.op_type + "_" + node.output()->name;
  });

  std::vector<Node*> without;
  std::erase_if(model.functions, [](const auto& entry) { return entry.first.domain == onnx_domain; });
  model.graph().for_each_node([&](Node& node) {
    if (node.domain != onnx_domain) return;
    const auto op = make_operator(node);
    if (op == nullptr) return;
    const std::string operator_name(op->type().name);
    write_whole(node, *op);
    node.op_type = operator_name;
    node.metadata.erase(std::string(operator_note));
    auto function = make_function(*op, function_inputs(node), model.graph().opset());
    if (!function) {
      without.push_back(&node);
      return;
    }
    node.op_type = function->key.name;
    if (node.op_type != operator_name) node.metadata[std::string(operator_note)] = operator_name;
    const FunctionKey key = function->key;
    const auto known = model.functions.find(key);
    if (known == model.functions.end()) {
      model.functions.emplace(key, std::move(*function));
    } else if (!same_body(known->second, *function)) {
      throw body_error(
          op->type(),
          fmt::format("{} needs another body for the function {} than an earlier node; rename one of the two functions",
                      describe(node), key.name));
    }
  });
  return without;
}

std::size_t detach_functions(Model& model, const std::function<bool(const OperatorType&)>& has_plugin) {
  adopt_drop_ins(model);
  std::set<std::string> kept;
  std::size_t count = 0;
  model.graph().for_each_node([&](Node& node) {
    if (node.domain != onnx_domain) return;
    const auto op = make_operator(node);
    if (op == nullptr) return;
    if (has_plugin && !has_plugin(op->type())) {
      kept.insert(node.op_type);
      return;
    }
    write_whole(node, *op);
    node.op_type = std::string(op->type().name);
    node.metadata.erase(std::string(operator_note));
    node.attributes["plugin_version"] = NodeAttribute(AttributeData(std::to_string(op->type().version)));
    const OperatorLibrary* library = library_of(op->type());
    const std::string space = library == nullptr ? std::string(onnx_domain) : library->plugin_namespace;
    node.attributes["plugin_namespace"] = NodeAttribute(AttributeData(space));
    std::vector<std::int64_t> shape_inputs;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (is_shape_input(op->type(), node, i)) shape_inputs.push_back(static_cast<std::int64_t>(i));
    }
    if (!shape_inputs.empty()) {
      node.attributes[std::string(shape_input_indices)] = NodeAttribute(AttributeData(std::move(shape_inputs)));
    }
    ++count;
  });
  std::erase_if(model.functions, [&](const auto& entry) {
    return entry.first.domain == onnx_domain && !kept.contains(entry.first.name);
  });
  return count;
}

bool is_adopted_for_tensorrt(const Node& node) {
  const OperatorType* type = find_onnx_operator(node);
  return type != nullptr && adoption_of(node, *type);
}

std::optional<RefusedType> type_not_adopted(const Node& node) {
  const OperatorType* type = find_onnx_operator(node);
  const auto adoption = type == nullptr ? std::nullopt : untyped_adoption_of(node, *type);
  if (!adoption) return std::nullopt;
  std::optional<RefusedType> refused = refused_type(*type, adoption->inputs, cast_before(node));
  const bool casts =
      refused && std::find(refused->allowed.begin(), refused->allowed.end(), DType::i32) != refused->allowed.end();
  if (casts) refused->allowed.insert(refused->allowed.end(), {DType::u8, DType::boolean});
  return refused;
}

std::size_t adopt_onnx_operators(Model& model) {
  std::vector<Node*> nodes;
  model.graph().for_each_node([&](Node& node) {
    if (find_onnx_operator(node) != nullptr) nodes.push_back(&node);
  });
  if (nodes.empty()) return 0;
  infer_shapes(model);
  std::size_t count = 0;
  for (Node* node : nodes) {
    const OperatorType& type = *find_onnx_operator(*node);
    const auto adoption = adoption_of(*node, type);
    if (!adoption) continue;
    const std::vector<DType>& dtypes = adoption->dtypes;
    write_old_defaults(*node, node->graph->opset());
    while (!node->inputs.empty()) node->graph->remove_last_input(*node);
    for (Value* input : adoption->inputs) node->graph->add_input_to(*node, input);
    for (const auto& [name, value] : adoption->attributes) {
      node->attributes.insert_or_assign(std::string(name), NodeAttribute(value));
    }
    if (node->name.empty() && node->output() != nullptr) node->name = node->op_type + "_" + node->output()->name;
    for (std::size_t i = 0; i < dtypes.size(); ++i) {
      const ElementType wanted = to_element_type(dtypes[i]);
      if (node->inputs[i] == nullptr) {
        node->graph->set_input(*node, i, add_left_out(*node->graph, type, i, wanted));
        continue;
      }
      const Value& input = *node->inputs[i];
      if (input.type == wanted) continue;
      Node* cast =
          node->graph->add_node("Cast", {node->inputs[i]}, {input.name + "_" + std::string(to_string(wanted))}, node);
      cast->attributes["to"] = NodeAttribute(AttributeData(static_cast<std::int64_t>(wanted)));
      cast->output()->type = wanted;
      cast->output()->shape = input.shape;
      node->graph->set_input(*node, i, cast->output());
    }
    node->op_type = std::string(type.name);
    node->domain = std::string(onnx_domain);
    node->graph->root().opset_imports.emplace(std::string(onnx_domain), 1);
    write_whole(*node, *make_operator(*node));
    ++count;
  }
  return count;
}

bool replace_with_native_form(Node& node) { return replace_by(node, make_native_form); }

bool replace_with_function_body(Node& node) { return replace_by(node, make_function); }

}  // namespace graft::onnx

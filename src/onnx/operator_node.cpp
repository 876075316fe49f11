// Finds the operators of nodes, and creates nodes of operators.
#include "onnx/operator_node.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "core/plugin_form.hpp"
#include "core/suggest.hpp"
#include "graft/operator/input_order.hpp"
#include "graft/operator/registry.hpp"
#include "onnx/faults.hpp"

namespace graft::onnx {
namespace {

/// Returns whether TensorRT's parser reads this attribute of a plugin node, although it is not an attribute of the
/// operator.
bool is_plugin_attribute(std::string_view name) {
  return name == "plugin_version" || name == "plugin_namespace" || name == shape_input_indices;
}

/// Returns whether nodes of this domain may be plugins. TensorRT's parser compares only the name, but a node of another
/// domain may have any meaning.
bool is_plugin_domain(std::string_view domain) {
  constexpr std::array<std::string_view, 9> domains = {
      "", "ai.onnx", onnx_domain, "TRT", "trt", "trt.plugins", "com.nvidia.tensorrt", "mmcv", "mmdeploy"};
  return std::find(domains.begin(), domains.end(), domain) != domains.end();
}

/// Returns the `plugin_version` of a node, or "" (any version) if the attribute is absent. Returns nothing if the
/// version is not a string or if `plugin_namespace` is not empty, because Graft replaces no such plugin.
std::optional<std::string> wanted_version(const Node& node) {
  if (const NodeAttribute* space = node.attribute("plugin_namespace")) {
    const auto* text = space->get<std::string>();
    if (text == nullptr || !text->empty()) return std::nullopt;
  }
  const NodeAttribute* version = node.attribute("plugin_version");
  if (version == nullptr) return "";
  const auto* text = version->get<std::string>();
  return text == nullptr ? std::nullopt : std::optional(*text);
}

/// Returns the operator of a loaded library to which the node refers, or null if no library has that name, version and
/// namespace.
const OperatorType* find_library_operator(const Node& node) {
  const OperatorType* type = operator_libraries().empty() ? nullptr : find_operator(node.op_type);
  const OperatorLibrary* library = type == nullptr ? nullptr : library_of(*type);
  if (library == nullptr) return nullptr;
  const bool is_it = node.string_or("plugin_version", std::to_string(type->version)) == std::to_string(type->version) &&
                     node.string_or("plugin_namespace", library->plugin_namespace) == library->plugin_namespace;
  return is_it ? type : nullptr;
}

/// Returns the elements of a tensor as a value of type `wanted`, as TensorRT's parser passes them to a plugin; nothing
/// if they do not fit that type.
std::optional<AttributeValue> value_of(const TensorData& tensor, AttributeType wanted) {
  if (wanted == AttributeType::integers || wanted == AttributeType::integer) {
    auto numbers = tensor.ints();
    if (!numbers || wanted == AttributeType::integers) return numbers;
    return numbers->size() == 1 ? std::optional<AttributeValue>(numbers->front()) : std::nullopt;
  }
  const auto numbers = is_floating_point(tensor.type) ? tensor.numbers() : std::nullopt;
  if (!numbers) return std::nullopt;
  if (wanted == AttributeType::float_numbers) return std::vector<float>(numbers->begin(), numbers->end());
  if (wanted != AttributeType::float_number || numbers->size() != 1) return std::nullopt;
  return static_cast<float>(numbers->front());
}

/// Returns the value of an attribute in the type `wanted`. A single number is accepted for a list, as in TensorRT's
/// plugin fields.
AttributeValue value_of(const Node& node, const std::string& name, const NodeAttribute& attribute,
                        AttributeType wanted) {
  const auto* tensor = attribute.get<TensorData>();
  const auto value = tensor == nullptr ? attribute.value() : value_of(*tensor, wanted);
  if (!value) {
    throw Error(fmt::format("{}: attribute `{}` has type {}; it must have type {}", describe(node), name,
                            attribute.kind(), to_string(wanted)));
  }
  if (const auto* number = std::get_if<std::int64_t>(&*value); number != nullptr && wanted == AttributeType::integers) {
    return std::vector{*number};
  }
  if (const auto* number = std::get_if<float>(&*value); number != nullptr && wanted == AttributeType::float_numbers) {
    return std::vector{*number};
  }
  return *value;
}

/// Returns the type of a node's attribute, or nothing if the operator, or the plugin that it replaces, has no such
/// attribute.
std::optional<AttributeType> type_of_attribute(const OperatorMatch& match, std::string_view name) {
  const DropInField* field = match.drop_in == nullptr ? nullptr : match.drop_in->find(name);
  if (match.drop_in != nullptr && field == nullptr) return std::nullopt;
  if (field != nullptr && field->attribute.empty()) return field->type;
  const AttributeInfo* info = match.type->find_attribute(field == nullptr ? name : field->attribute);
  return info == nullptr ? std::nullopt : std::optional(info->type);
}

std::vector<std::string> known_attributes(const OperatorMatch& match) {
  std::vector<std::string> names;
  if (match.drop_in != nullptr) {
    for (const DropInField& field : match.drop_in->fields) names.emplace_back(field.name);
  } else {
    for (const AttributeInfo& info : match.type->attributes) names.emplace_back(info.name);
  }
  return names;
}

Error unknown_attribute(const Node& node, const OperatorMatch& match, const std::string& name) {
  const std::vector<std::string> known = known_attributes(match);
  const auto meant = nearest(name, known);
  return Error(fmt::format(
      "{}: it has no attribute `{}`{}; {}", describe(node), name,
      meant ? fmt::format(" (did you mean `{}`?)", *meant) : "",
      known.empty() ? "it has no attributes" : fmt::format("its attributes are {}", fmt::join(known, ", "))));
}

}  // namespace

OperatorMatch find_operator_for(const Node& node) {
  if (node.metadata.contains(fault_note)) return {};
  if (node.domain == onnx_domain) {
    const auto note = node.metadata.find(operator_note);
    if (note != node.metadata.end()) {
      if (const OperatorType* type = find_operator(note->second)) return {type, nullptr};
    }
    if (const OperatorType* type = find_operator(node.op_type)) return {type, nullptr};
  }
  if (is_standard_operator(node.domain, node.op_type)) return {};
  if (const OperatorType* type = find_library_operator(node)) return {type, nullptr};
  const auto version = wanted_version(node);
  if (!version) return {};
  for (const OperatorType* type : operators()) {
    for (const DropIn& drop_in : type->drop_ins) {
      if (drop_in.plugin_name != node.op_type) continue;
      if (find_plugin_form(node.op_type) == nullptr && !is_plugin_domain(node.domain)) continue;
      if (version->empty() || *version == drop_in.version) return {type, &drop_in};
    }
  }
  return {};
}

OperatorMatch find_adopted_operator(const Node& node) {
  const OperatorMatch match = find_operator_for(node);
  return match.drop_in == nullptr && node.domain == onnx_domain ? OperatorMatch{} : match;
}

namespace {

/// Returns whether a node has the attributes that the Graft operator requires. The values of these attributes must be
/// allowed: a Graft operator may compute an ONNX operator only with some attribute values (a reduction, for example).
bool has_required_attributes(const Node& node, const OperatorType& type) {
  return std::all_of(type.attributes.begin(), type.attributes.end(), [&](const AttributeInfo& info) {
    if (!info.required) return true;
    const NodeAttribute* attribute = node.attribute(info.name);
    const auto value = attribute == nullptr ? std::nullopt : attribute->value();
    return value && check_attribute(info, *value).ok();
  });
}

}  // namespace

const OperatorType* find_onnx_operator(const Node& node) {
  if (!node.domain.empty() && node.domain != "ai.onnx") return nullptr;
  if (node.metadata.contains(fault_note)) return nullptr;
  for (const OperatorType* type : operators()) {
    if (type->onnx_form && type->onnx_form->name == node.op_type && has_required_attributes(node, *type)) return type;
  }
  return nullptr;
}

bool has_onnx_operators(const Model& model) {
  bool found = false;
  model.graph().for_each_node([&](const Node& node) { found = found || find_onnx_operator(node) != nullptr; });
  return found;
}

std::vector<Value*> operator_inputs(const Node& node) {
  const OperatorMatch match = find_operator_for(node);
  const InputOrder order = match ? InputOrder::of(*match.type, match.drop_in) : InputOrder();
  if (order.is_own()) return node.inputs;
  const std::size_t given = node.inputs.size();
  if (given < order.least() || given > order.most()) {
    const std::string least = order.least() == order.most() ? "" : fmt::format("{} to ", order.least());
    throw Error(fmt::format("{}: it has {} inputs; it must have {}{}: {}", describe(node), given, least, order.most(),
                            order.to_string(*match.type)));
  }
  std::array<Value*, TypeRow::max_ports> storage{};
  const auto arranged = order.arrange<Value*>(node.inputs, nullptr, storage);
  std::vector<Value*> inputs(arranged.begin(), arranged.end());
  const std::size_t required = match.type->required_input_count();
  for (std::size_t port = 0; port < required; ++port) {
    if (inputs[port] != nullptr) continue;
    throw Error(fmt::format("{}: its input {} is left out: `{}` is required", describe(node),
                            *order.index_of(port, given), match.type->ports[port].name));
  }
  while (inputs.size() > required && inputs.back() == nullptr) inputs.pop_back();
  return inputs;
}

std::optional<DType> dtype_left_out(const OperatorType& type, std::span<Value* const> inputs, std::size_t port) {
  for (std::size_t i = 0; i < std::min(inputs.size(), type.input_count()); ++i) {
    const Value* input = inputs[i];
    const bool is_alike = type.ports[i].type.constraint == type.ports[port].type.constraint;
    if (is_alike && input != nullptr && input->type) return to_dtype(*input->type);
  }
  return std::nullopt;
}

std::optional<RefusedType> refused_type(const OperatorType& type, std::span<Value* const> inputs,
                                        ElementType (*cast)(ElementType)) {
  if (inputs.size() > type.most_inputs()) return std::nullopt;
  std::vector<const TypeRow*> rows;
  for (const TypeRow& row : type.type_rows) rows.push_back(&row);
  // Shape inputs, which have no type of their own, come last.
  const std::size_t count = inputs.size() - std::min(inputs.size(), type.shape_input_count());
  for (std::size_t i = 0; i < count; ++i) {
    const Value* input = inputs[i];
    if (input == nullptr || !input->type) continue;
    const std::size_t port = type.port_of(count, i);
    const std::optional<DType> dtype = to_dtype(cast == nullptr ? *input->type : cast(*input->type));
    RefusedType refused{.input = input, .allowed = {}};
    for (const TypeRow* row : rows) {
      const DType allowed = row->formats[port].dtype;
      const bool is_new = std::find(refused.allowed.begin(), refused.allowed.end(), allowed) == refused.allowed.end();
      if (is_new) refused.allowed.push_back(allowed);
    }
    std::erase_if(rows, [&](const TypeRow* row) { return !dtype || row->formats[port].dtype != *dtype; });
    if (rows.empty()) return refused;
  }
  return std::nullopt;
}

Value* add_left_out(Graph& graph, const OperatorType& type, std::size_t port, ElementType element) {
  TensorData nothing;
  nothing.type = element;
  nothing.dims = {0};
  return graph.add_constant(type.ports[port].name, nothing);
}

std::unique_ptr<Operator> make_operator(const Node& node) {
  const OperatorMatch match = find_operator_for(node);
  if (!match) return nullptr;
  std::unique_ptr<Operator> op;
  std::vector<NamedAttribute> given;
  for (const auto& [name, attribute] : node.attributes) {
    if (is_plugin_attribute(name)) continue;
    const auto type = type_of_attribute(match, name);
    if (!type) throw unknown_attribute(node, match, name);
    given.push_back({name, value_of(node, name, attribute, *type)});
  }
  if (const Status status = make_operator(*match.type, match.drop_in, given, op); !status.ok()) {
    throw Error(fmt::format("{}: {}", describe(node), status.message()));
  }
  return op;
}

void check_operator(const Node& node) {
  const std::unique_ptr<Operator> op = make_operator(node);
  if (op == nullptr) return;
  const DropIn* drop_in = find_operator_for(node).drop_in;
  const bool is_other = drop_in != nullptr && has_own_outputs(drop_in->plugin_name);
  const std::size_t most =
      is_other ? find_plugin_form(drop_in->plugin_name)->outputs.size() : op->type().output_count();
  if (node.outputs.size() > most) {
    throw Error(
        fmt::format("{}: it has {} outputs; it may have at most {}", describe(node), node.outputs.size(), most));
  }
  std::vector<TensorDesc> inputs;
  std::vector<DType> dtypes;
  std::vector<Extents> shape_values;
  const std::vector<Value*> given = operator_inputs(node);
  for (std::size_t i = 0; i < given.size(); ++i) {
    const Value* input = given[i];
    if (input == nullptr) {
      const auto dtype = dtype_left_out(op->type(), given, i);
      if (!dtype) return;
      inputs.push_back({.dtype = *dtype, .layout = Layout::linear, .extents = {0}});
      dtypes.push_back(*dtype);
      continue;
    }
    if (is_shape_input(op->type(), node, i)) {
      const auto values = constant_ints(input);
      if (!values || !Extents::make(*values, shape_values.emplace_back()).ok()) return;
      continue;
    }
    const auto dtype = input->type ? to_dtype(*input->type) : std::nullopt;
    const bool is_known = input->shape && std::all_of(input->shape->begin(), input->shape->end(),
                                                      [](const Dim& dim) { return dim.is_constant(); });
    if (!dtype || !is_known) return;
    std::vector<std::int64_t> sizes;
    for (const Dim& dim : *input->shape) sizes.push_back(dim.value());
    TensorDesc desc{.dtype = *dtype, .layout = Layout::linear, .extents = {}};
    if (!Extents::make(sizes, desc.extents).ok()) return;
    inputs.push_back(desc);
    dtypes.push_back(*dtype);
  }
  const auto output_dtypes = op->type().output_dtypes(dtypes);
  if (!output_dtypes) return;
  std::vector<Extents> results;
  Status status = infer_extents(*op, inputs, results, shape_values);
  std::vector<TensorDesc> outputs;
  for (std::size_t i = 0; status.ok() && i < results.size(); ++i) {
    outputs.push_back({.dtype = (*output_dtypes)[i], .layout = Layout::linear, .extents = results[i]});
  }
  if (status.ok()) status = op->check({inputs, outputs});
  if (!status.ok() && status.code() == StatusCode::invalid_argument) {
    throw Error(fmt::format("{}: {}", describe(node), status.message()));
  }
}

bool is_shape_input(const OperatorType& type, const Node& node, std::size_t input) {
  return input + type.shape_input_count() >= node.inputs.size() && input < node.inputs.size();
}

std::vector<Shape> without_data_sizes(std::vector<Shape> outputs) {
  std::map<std::size_t, Dim> unknown;
  for (Shape& shape : outputs) {
    for (Dim& dim : shape) {
      if (dim.kind() != Dim::Kind::data_size) continue;
      dim = unknown.try_emplace(dim.size_output(), unknown_dim()).first->second;
    }
  }
  return outputs;
}

void write_attributes(Node& node, const Operator& op) {
  node.attributes.clear();
  for (const AttributeInfo& info : op.type().attributes) {
    node.attributes.emplace(std::string(info.name), NodeAttribute(op.get(info.name).value_or(info.default_value)));
  }
}

Node* add_operator_node(Graph& graph, const Operator& op, std::vector<Value*> inputs,
                        const std::vector<std::string>& output_hints, Node* before) {
  graph.root().opset_imports.emplace(std::string(onnx_domain), 1);
  Node* node =
      graph.add_node(std::string(op.type().name), std::move(inputs), output_hints, before, std::string(onnx_domain));
  write_attributes(*node, op);
  return node;
}

}  // namespace graft::onnx

// Functions that all operators share: look-ups in an OperatorType, and checks of formats.
#include "graft/operator/operator.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <utility>

#include "graft/operator/define_operator.hpp"

namespace graft {
namespace {

std::string describe_row(const OperatorType& type, const TypeRow& row) {
  std::string text;
  for (std::size_t i = 0; i < row.count; ++i) {
    const Format& format = row.formats[i];
    text += (i == 0 ? "" : ", ") + std::string(type.ports[i].name) + ":" + std::string(to_string(format.dtype));
    if (format.layout != Layout::linear) text += " " + std::string(to_string(format.layout));
  }
  return text;
}

/// Returns whether a port accepts the format `found` if its type row has the format `allowed`. Both must be the same,
/// but a size output may also be i32, because sizes have 32 bits in TensorRT before 10.15.
bool is_taken(const Format& found, const Format& allowed, const Port& port) {
  return found == allowed || (port.is_size() && found == Format(DType::i32));
}

}  // namespace

std::vector<TypeRow> rows_of(std::span<const Port> ports, std::span<const TypeConstraint> constraints) {
  std::size_t row_count = 1;
  for (const TypeConstraint& constraint : constraints) row_count *= constraint.count;
  std::vector<TypeRow> rows(row_count);
  for (std::size_t i = 0; i < row_count; ++i) {
    rows[i].count = ports.size();
    std::size_t rest = row_count;
    for (const TypeConstraint& constraint : constraints) {
      rest /= constraint.count;
      for (std::size_t port = 0; port < ports.size(); ++port) {
        if (ports[port].type.constraint != constraint.name) continue;
        rows[i].formats[port] = constraint.formats[i / rest % constraint.count];
      }
    }
    for (std::size_t port = 0; port < ports.size(); ++port) {
      if (ports[port].type.constraint.empty()) rows[i].formats[port] = ports[port].type.fixed;
    }
  }
  return rows;
}

std::size_t OperatorType::input_count() const {
  return static_cast<std::size_t>(
      std::count_if(ports.begin(), ports.end(), [](const Port& p) { return !p.is_output(); }));
}

std::size_t OperatorType::required_input_count() const {
  return static_cast<std::size_t>(
      std::count_if(ports.begin(), ports.end(), [](const Port& p) { return !p.is_output() && !p.is_optional(); }));
}

std::size_t OperatorType::most_inputs() const {
  const bool is_variadic = std::any_of(ports.begin(), ports.end(), [](const Port& p) { return p.is_variadic(); });
  return is_variadic ? TypeRow::max_ports - output_count() : input_count();
}

std::size_t OperatorType::shape_input_count() const {
  return static_cast<std::size_t>(
      std::count_if(ports.begin(), ports.end(), [](const Port& p) { return p.is_shape(); }));
}

std::size_t OperatorType::output_count() const { return ports.size() - input_count(); }

std::size_t OperatorType::size_output_count() const {
  return static_cast<std::size_t>(std::count_if(ports.begin(), ports.end(), [](const Port& p) { return p.is_size(); }));
}

std::string OperatorType::input_count_text() const {
  const std::string most = std::to_string(most_inputs());
  return required_input_count() == most_inputs() ? most : std::to_string(required_input_count()) + " to " + most;
}

std::string OperatorType::input_name(std::size_t index) const {
  const std::size_t last = input_count() - 1;
  const Port& port = ports[std::min(index, last)];
  return std::string(port.name) + (port.is_variadic() ? "_" + std::to_string(index - last + 1) : "");
}

std::size_t OperatorType::port_of(std::size_t given, std::size_t index) const {
  const std::size_t inputs = input_count();
  return index < given ? std::min(index, inputs - 1) : index - given + inputs;
}

const Format& OperatorType::format_of(const TypeRow& row, std::size_t given, std::size_t index) const {
  return row.formats[port_of(given, index)];
}

const DropInField* DropIn::find(std::string_view field) const {
  const auto found = std::find_if(fields.begin(), fields.end(), [&](const DropInField& f) { return f.name == field; });
  return found == fields.end() ? nullptr : &*found;
}

const AttributeInfo* OperatorType::find_attribute(std::string_view attribute) const {
  const auto found =
      std::find_if(attributes.begin(), attributes.end(), [&](const AttributeInfo& a) { return a.name == attribute; });
  return found == attributes.end() ? nullptr : &*found;
}

std::optional<std::size_t> OperatorType::find_input(std::string_view input) const {
  const std::size_t inputs = input_count();
  for (std::size_t port = 0; port < inputs; ++port) {
    if (ports[port].name == input) return port;
  }
  return std::nullopt;
}

bool OperatorType::takes_onnx_nodes() const {
  if (!onnx_form || shape_input_count() > 0) return false;
  if (onnx_form->needs_override && size_output_count() > 0) return false;
  return std::all_of(onnx_form->inputs.begin(), onnx_form->inputs.end(),
                     [&](std::string_view name) { return find_input(name).has_value(); });
}

std::optional<std::vector<DType>> OperatorType::output_dtypes(std::span<const DType> input_dtypes) const {
  const std::size_t given = input_dtypes.size();
  if (given + shape_input_count() < required_input_count() || given > most_inputs()) return std::nullopt;
  for (const TypeRow& row : type_rows) {
    bool matches = true;
    for (std::size_t i = 0; i < given; ++i) matches = matches && input_dtypes[i] == format_of(row, given, i).dtype;
    if (!matches) continue;
    std::vector<DType> outputs;
    for (std::size_t i = input_count(); i < row.count; ++i) outputs.push_back(row.formats[i].dtype);
    return outputs;
  }
  return std::nullopt;
}

Status check_attributes(const OperatorType& type, std::span<const NamedAttribute> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto& [name, value] = values[i];
    const AttributeInfo* info = type.find_attribute(name);
    if (info == nullptr) {
      std::string known;
      for (const AttributeInfo& each : type.attributes) known += (known.empty() ? "" : ", ") + std::string(each.name);
      return invalid_argument(std::string(type.name) + " has no attribute `" + std::string(name) + "`; " +
                              (known.empty() ? "it has no attributes" : "its attributes are " + known));
    }
    if (Status status = check_attribute(*info, value); !status.ok()) return status;
    for (const auto& [earlier_name, earlier_value] : values.first(i)) {
      if (earlier_name == name && earlier_value != value) {
        return invalid_argument("attribute `" + std::string(name) + "` has two different values, " +
                                to_string(earlier_value) + " and " + to_string(value) + "; set only one of them");
      }
    }
  }
  return {};
}

Status Operator::set(std::string_view attribute, const AttributeValue& value) {
  const NamedAttribute one{attribute, value};
  return set(std::span(&one, 1));
}

bool has_rank_of_layout(const OperatorType& type, const TypeRow& row, std::span<const int> input_ranks) {
  for (std::size_t i = 0; i < input_ranks.size(); ++i) {
    if (type.format_of(row, input_ranks.size(), i).layout != Layout::linear && input_ranks[i] >= 0 &&
        input_ranks[i] != 4)
      return false;
  }
  return true;
}

namespace {

/// Computes the extents of the outputs and stores them in `outputs`. `shape_values` contains the values of each shape
/// input. `size_of` converts a dimension to a number.
template <class SizeOf>
Status extents_of(const Operator& op, std::span<const TensorDesc> inputs, std::span<const Extents> shape_values,
                  const SizeOf& size_of, std::vector<Extents>& outputs) {
  std::vector<Shape> input_shapes;
  for (const TensorDesc& desc : inputs) input_shapes.emplace_back(desc.extents.begin(), desc.extents.end());
  for (const Extents& values : shape_values) input_shapes.emplace_back(values.begin(), values.end());
  std::vector<Shape> shapes;
  if (Status status = op.infer_shapes(input_shapes, shapes); !status.ok()) return status;
  outputs.clear();
  for (const Shape& shape : shapes) {
    std::vector<std::int64_t> sizes;
    for (const Dim& dim : shape) sizes.push_back(size_of(dim));
    if (Status status = Extents::make(sizes, outputs.emplace_back()); !status.ok()) {
      const OperatorType& type = op.type();
      return invalid_argument(std::string(type.name) + ": output " +
                              std::string(type.ports[type.input_count() + outputs.size() - 1].name) + ": " +
                              status.message());
    }
  }
  return {};
}

constexpr std::int64_t no_size = -1;

/// Returns an error if a size output is i32 and the size may exceed 32 bits.
Status check_narrow_sizes(const Operator& op, const Problem& problem) {
  const OperatorType& type = op.type();
  if (type.size_output_count() == 0 || problem.outputs.back().dtype != DType::i32) return {};
  std::vector<Shape> input_shapes;
  for (const TensorDesc& desc : problem.inputs) input_shapes.emplace_back(desc.extents.begin(), desc.extents.end());
  std::vector<Shape> shapes;
  if (Status status = op.infer_shapes(input_shapes, shapes); !status.ok()) return status;
  for (const Shape& shape : shapes) {
    for (const Dim& dim : shape) {
      const std::int64_t largest = dim.largest().value_or(no_size);
      if (dim.kind() != Dim::Kind::data_size || largest <= std::numeric_limits<std::int32_t>::max()) continue;
      return unsupported(std::string(type.name) + ": `" +
                         std::string(type.ports[type.input_count() + dim.size_output()].name) + "` can reach " +
                         std::to_string(largest) +
                         "; it may be at most 2147483647, because sizes in this release of TensorRT have 32 bits");
    }
  }
  return {};
}

}  // namespace

Status infer_extents(const Operator& op, std::span<const TensorDesc> inputs, std::vector<Extents>& outputs,
                     std::span<const Extents> shape_values) {
  return extents_of(
      op, inputs, shape_values, [](const Dim& dim) { return dim.largest().value_or(no_size); }, outputs);
}

Status read_extents(const Operator& op, const Problem& problem, std::span<const void* const> addresses,
                    std::vector<Extents>& outputs) {
  const auto read = [&](std::size_t output) -> std::int64_t {
    if (problem.outputs[output].dtype == DType::i32) return *static_cast<const std::int32_t*>(addresses[output]);
    return *static_cast<const std::int64_t*>(addresses[output]);
  };
  if (op.type().size_output_count() == 0) {
    outputs.clear();
    for (const TensorDesc& desc : problem.outputs) outputs.push_back(desc.extents);
    return {};
  }
  std::string wrong;
  const auto size_of = [&](const Dim& dim) {
    const std::int64_t largest = dim.largest().value_or(no_size);
    if (dim.kind() != Dim::Kind::data_size) return largest;
    const std::int64_t size = read(dim.size_output());
    if (size >= 0 && size <= largest) return size;
    const OperatorType& type = op.type();
    wrong = std::string(type.name) + ": size output `" +
            std::string(type.ports[type.input_count() + dim.size_output()].name) + "` is " + std::to_string(size) +
            "; it must be between 0 and " + std::to_string(largest);
    return std::int64_t{0};
  };
  if (Status status = extents_of(op, problem.inputs, {}, size_of, outputs); !status.ok()) return status;
  return wrong.empty() ? Status() : Status(StatusCode::invalid_argument, wrong);
}

Status check_output_shapes(const OperatorType& type, std::span<const Shape> outputs) {
  const std::string of_shapes = std::string(type.name) + ": infer_shapes ";
  if (outputs.size() != type.output_count()) {
    return invalid_argument(of_shapes + "returned " + std::to_string(outputs.size()) + " shapes for " +
                            std::to_string(type.output_count()) + " outputs");
  }
  std::array<const Dim*, TypeRow::max_ports> sizes{};
  for (const Shape& shape : outputs) {
    for (const Dim& dim : shape) {
      if (dim.kind() != Dim::Kind::data_size) continue;
      const std::size_t output = dim.size_output();
      const bool is_size = output < outputs.size() && type.ports[type.input_count() + output].is_size();
      if (!is_size || !outputs[output].empty()) {
        return invalid_argument(of_shapes + "names output " + std::to_string(output) +
                                " as a size, but it is not a size_output() of rank 0");
      }
      if (sizes[output] == nullptr) sizes[output] = &dim;
      const bool is_ordered = !dim.left().is_constant() || !dim.right().is_constant() ||
                              (0 <= dim.left().value() && dim.left().value() <= dim.right().value());
      if (!(*sizes[output] == dim) || !is_ordered) {
        return invalid_argument(
            of_shapes + "has two different bounds for one size, or an optimum outside of 0 to the largest size");
      }
    }
  }
  for (std::size_t output = 0; output < outputs.size(); ++output) {
    const Port& port = type.ports[type.input_count() + output];
    if (!port.is_size() || sizes[output] != nullptr) continue;
    return invalid_argument(of_shapes + "has no data_size() of `" + std::string(port.name) +
                            "`; declare an integer output that is not a size with output()");
  }
  return {};
}

Status check_shapes(const Operator& op, const Problem& problem) {
  std::vector<Extents> allowed;
  if (op.type().shape_input_count() == 0) {
    if (Status status = infer_extents(op, problem.inputs, allowed); !status.ok()) return status;
  }
  for (std::size_t i = 0; i < allowed.size(); ++i) {
    const Extents& found = problem.outputs[i].extents;
    if (found == allowed[i]) continue;
    return invalid_argument(std::string(op.type().name) + ": output " + std::to_string(i) + " has shape " +
                            to_string(found) + "; it must have shape " + to_string(allowed[i]));
  }
  for (std::size_t i = 0; i < problem.outputs.size(); ++i) {
    const std::optional<std::size_t> input = op.aliased_input(i);
    if (!input || (*input < problem.inputs.size() && problem.inputs[*input] == problem.outputs[i])) continue;
    const OperatorType& type = op.type();
    const bool is_given = *input < problem.inputs.size();
    return invalid_argument(std::string(type.name) + ": `" + type.input_name(*input) + "` is " +
                            (is_given ? to_string(problem.inputs[*input]) : "left out") + "; it must be " +
                            to_string(problem.outputs[i]) + ", because `" +
                            std::string(type.ports[type.input_count() + i].name) + "` uses the memory of this input");
  }
  return check_narrow_sizes(op, problem);
}

Status check_port_counts(const OperatorType& type, const Problem& problem) {
  const std::size_t given = problem.inputs.size() + type.shape_input_count();
  if (given >= type.required_input_count() && given <= type.most_inputs() &&
      problem.outputs.size() == type.output_count()) {
    return {};
  }
  return invalid_argument(std::string(type.name) + " takes " + type.input_count_text() + " inputs and " +
                          std::to_string(type.output_count()) + " outputs, found " + std::to_string(given) + " and " +
                          std::to_string(problem.outputs.size()));
}

Status check_sizes(const OperatorType& type, const Problem& problem) {
  constexpr std::int64_t most = std::int64_t{1} << 48;
  for (const std::span<const TensorDesc> tensors : {problem.inputs, problem.outputs}) {
    for (const TensorDesc& desc : tensors) {
      std::int64_t room = most;
      for (const std::int64_t extent : desc.extents) {
        if (extent > room) {
          return invalid_argument(std::string(type.name) + ": a tensor of " + to_string(desc) +
                                  " has more elements than any device can hold");
        }
        if (extent > 0) room /= extent;
      }
    }
  }
  return {};
}

Status check_formats(const OperatorType& type, const Operator& op, const Problem& problem, std::size_t given) {
  std::array<int, TypeRow::max_ports> ranks{};
  for (std::size_t i = 0; i < given; ++i) ranks[i] = problem.inputs[i].extents.rank();
  const std::span<const int> input_ranks(ranks.data(), given);
  const std::size_t inputs = problem.inputs.size();
  const auto format_at = [&](std::size_t i) -> Format {
    const TensorDesc& desc = i < inputs ? problem.inputs[i] : problem.outputs[i - inputs];
    return {desc.dtype, desc.layout};
  };
  for (const TypeRow& row : type.type_rows) {
    bool matches = op.accepts(row, input_ranks);
    for (std::size_t i = 0; matches && i < inputs + problem.outputs.size(); ++i) {
      const std::size_t port = type.port_of(inputs, i);
      matches = is_taken(format_at(i), row.formats[port], type.ports[port]);
    }
    if (matches) return {};
  }
  std::string found;
  for (const std::span<const TensorDesc> tensors : {problem.inputs, problem.outputs}) {
    for (const TensorDesc& desc : tensors) found += (found.empty() ? "" : ", ") + to_string(desc);
  }
  std::string allowed;
  for (const TypeRow& row : type.type_rows) allowed += (allowed.empty() ? "" : "; ") + describe_row(type, row);
  return unsupported(std::string(type.name) + " does not take " + found + "; it supports " + allowed);
}

namespace {

/// Returns `message`, an error about an attribute of the operator, with the name of the plugin's field in place of the
/// attribute's name. Returns it unchanged if `drop_in` is null or no field sets the attribute.
std::string in_words_of(const DropIn* drop_in, std::string message) {
  if (drop_in == nullptr) return message;
  for (const DropInField& field : drop_in->fields) {
    const std::string quoted = "`" + std::string(field.attribute) + "`";
    const std::size_t at = field.attribute.empty() ? std::string::npos : message.find(quoted);
    if (at != std::string::npos) return message.replace(at, quoted.size(), "`" + std::string(field.name) + "`");
  }
  return message;
}

}  // namespace

Status make_operator(const OperatorType& type, const DropIn* drop_in, std::span<const NamedAttribute> fields,
                     std::unique_ptr<Operator>& result) {
  std::vector<NamedAttribute> attributes;
  std::vector<NamedAttribute> to_translate;
  if (drop_in != nullptr) {
    for (const DropInField& field : drop_in->fields) {
      const auto is_it = [&](const NamedAttribute& given) { return given.name == field.name; };
      if (!field.is_required || std::any_of(fields.begin(), fields.end(), is_it)) continue;
      return invalid_argument("attribute `" + std::string(field.name) + "` is required and missing, because " +
                              std::string(drop_in->plugin_name) + " has no default for it; set it");
    }
  }
  for (const NamedAttribute& given : fields) {
    const DropInField* field = drop_in == nullptr ? nullptr : drop_in->find(given.name);
    if (field == nullptr) {
      attributes.push_back(given);
    } else if (field->attribute.empty()) {
      if (type_of(given.value) != field->type) {
        return invalid_argument("attribute `" + std::string(given.name) + "` has type " +
                                std::string(to_string(type_of(given.value))) + "; it must have type " +
                                std::string(to_string(field->type)));
      }
      to_translate.push_back(given);
    } else {
      attributes.push_back({field->attribute, given.value});
    }
  }
  if (!to_translate.empty()) {
    if (Status status = drop_in->translate(to_translate, attributes); !status.ok()) return status;
  }
  const auto is_given = [&](std::string_view name) {
    return std::any_of(attributes.begin(), attributes.end(), [&](const NamedAttribute& a) { return a.name == name; });
  };
  if (drop_in != nullptr) {
    for (const NamedAttribute& preset : drop_in->defaults) {
      if (!is_given(preset.name)) attributes.push_back(preset);
    }
  }
  for (const AttributeInfo& info : type.attributes) {
    if (!info.required || is_given(info.name)) continue;
    std::string name(info.name);
    if (drop_in != nullptr) {
      for (const DropInField& field : drop_in->fields) {
        if (field.attribute == info.name) name = field.name;
      }
    }
    return invalid_argument("attribute `" + name + "` is required and missing: " + std::string(info.doc));
  }
  auto op = type.create();
  if (Status status = op->set(attributes); !status.ok()) return {status.code(), in_words_of(drop_in, status.message())};
  result = std::move(op);
  return {};
}

}  // namespace graft

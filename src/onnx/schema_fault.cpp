// Compares nodes with the schemas of ONNX.
#include <fmt/format.h>

#include <algorithm>

#include "core/suggest.hpp"
#include "onnx/model.hpp"
#include "onnx/onnx-ml.pb.h"
#include "onnx/schema.hpp"
#include "onnx/schema_ports.hpp"
#include "onnx/standard_operators.hpp"

namespace graft::onnx {
namespace {

/// Returns the kind of a value as a letter of AttributeSchema::kind.
char kind_of(const NodeAttribute& attribute) {
  using Proto = ::onnx::AttributeProto;
  if (const auto* reference = attribute.get<AttributeReference>()) {
    switch (reference->onnx_type) {
      case Proto::FLOAT: return 'f';
      case Proto::INT: return 'i';
      case Proto::STRING: return 's';
      case Proto::FLOATS: return 'F';
      case Proto::INTS: return 'I';
      default: return '-';
    }
  }
  if (attribute.get<float>() != nullptr) return 'f';
  if (attribute.get<std::int64_t>() != nullptr) return 'i';
  if (attribute.get<std::string>() != nullptr) return 's';
  if (attribute.get<std::vector<float>>() != nullptr) return 'F';
  if (attribute.get<std::vector<std::int64_t>>() != nullptr) return 'I';
  if (attribute.get<std::vector<std::string>>() != nullptr) return 'S';
  return attribute.get<TensorData>() != nullptr ? 't' : '-';
}

/// Returns a phrase for a letter of AttributeSchema::kind, such as "a real number, such as 1.0".
std::string_view words_of(char kind) {
  switch (kind) {
    case 'f': return "a real number, such as 1.0";
    case 'i': return "an integer, such as 1";
    case 's': return "a string, such as \"linear\"";
    case 'F': return "a list of real numbers, such as [1.0, 2.0]";
    case 'I': return "a list of integers, such as [1, 2]";
    case 'S': return "a list of strings, such as [\"Tanh\", \"Relu\"]";
    case 't': return "a tensor, such as f16(1)";
    default: return "a value that a line cannot contain";
  }
}

std::string unknown_operator(std::string_view op_type, std::int64_t opset) {
  if (const OperatorSchema* schema = find_schema(op_type)) {
    const bool is_newer = opset < schema->since;
    return fmt::format("operator set {} {} {}, which {} in operator set {}", opset,
                       is_newer ? "does not have" : "no longer has", op_type, is_newer ? "appears" : "was removed",
                       is_newer ? schema->since : schema->removed);
  }
  const auto meant = nearest_standard_operator(op_type);
  return fmt::format("ONNX has no operator {}{}", op_type, meant ? fmt::format("; did you mean {}?", *meant) : "");
}

std::string unknown_attribute(const SchemaVersion& schema, const std::string& name, std::int64_t opset) {
  std::vector<std::string> names;
  for (const AttributeSchema& attribute : schema.attributes()) names.emplace_back(attribute.name);
  const bool is_of_another_set = find_schema(schema.name)->has_attribute(name);
  return no_attribute(schema.name, name, names, is_of_another_set ? fmt::format(" in operator set {}", opset) : "");
}

std::optional<std::string> fault_of_attributes(const Node& node, const SchemaVersion& schema, std::int64_t opset) {
  const std::vector<AttributeSchema> known = schema.attributes();
  for (const auto& [name, value] : node.attributes) {
    const auto found = std::ranges::find(known, name, &AttributeSchema::name);
    if (found == known.end()) return unknown_attribute(schema, name, opset);
    if (kind_of(value) != found->kind) {
      return fmt::format("attribute `{}` of {} is {}; found {}", name, schema.name, words_of(found->kind),
                         words_of(kind_of(value)));
    }
  }
  for (const AttributeSchema& attribute : known) {
    if (attribute.is_required && node.attribute(attribute.name) == nullptr) {
      return fmt::format("{} needs the attribute `{}`, {}", schema.name, attribute.name, words_of(attribute.kind));
    }
  }
  if (!node.is("Constant") || node.attributes.size() == 1) return std::nullopt;
  return "Constant has one attribute, its value: value_float=1.0, value_int=1, value_floats=[1.0, 2.0], "
         "value_ints=[1, 2] or value=f16(1)";
}

}  // namespace

std::optional<std::string> schema_fault(const Node& node, std::int64_t opset) {
  const auto schema = find_schema_version(node.op_type, opset);
  if (!schema) return unknown_operator(node.op_type, opset);
  if (auto fault = port_fault(node, opset)) return fault;
  return fault_of_attributes(node, *schema, opset);
}

}  // namespace graft::onnx

// Element types through the text of a function.
#include "onnx/body_types.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "graft/error.hpp"
#include "onnx/low_precision.hpp"
#include "onnx/onnx-ml.pb.h"
#include "onnx/schema.hpp"
#include "onnx/shape_rules.hpp"

namespace graft::onnx {
namespace {

bool is_constant(const Value& value) { return value.producer != nullptr && value.producer->is("Constant"); }

/// The tables of schemas say of these that they take no f16 where they do: their inputs are sequences of tensors, or
/// their letters stand for another operator set.
bool has_no_letters(const Node& node) {
  return node.op_type.find("Sequence") != std::string::npos || node.op_type.starts_with("Optional") ||
         is_any_of(node, {"Resize", "If", "Loop", "Scan"});
}

std::string two_types(const Node& node, const Value& a, const Value& b) {
  // What is cast is a constant, or else what is of the type that constants have.
  const bool casts_first = is_constant(a) != is_constant(b) ? is_constant(a) : a.type == ElementType::f32;
  const Value& cast = casts_first ? a : b;
  const Value& like = casts_first ? b : a;
  return fmt::format(
      "{} of {} '{}' and {} '{}', which have to be of one type: cast one in a line above, as in {}_cast = "
      "CastLike({}, {}), and give {} that",
      node.op_type, to_string(*a.type), a.name, to_string(*b.type), b.name, cast.name, cast.name, like.name,
      node.op_type);
}

std::optional<std::string> fault_of_inputs(const Node& node) {
  const OperatorSchema* schema = find_schema(node.op_type);
  if (schema == nullptr || has_no_letters(node)) return std::nullopt;
  const std::string_view letters = schema->input_types;
  std::map<char, const Value*> first_of;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const Value* input = node.inputs[i];
    if (input == nullptr || !input->type) continue;
    const char letter = letters.empty() ? '.' : letters[std::min(i, letters.size() - 1)];
    if (letter == '.') {
      if (!is_low_precision(*input->type)) continue;
      return fmt::format("input {} of {}, '{}', is {}, which ONNX does not allow there: cast it in a line above", i,
                         node.op_type, input->name, to_string(*input->type));
    }
    const Value& first = *first_of.emplace(letter, input).first->second;
    if (*first.type != *input->type) return two_types(node, first, *input);
  }
  if (!node.is("Where") || node.inputs.empty() || node.inputs[0] == nullptr || !node.inputs[0]->type) {
    return std::nullopt;
  }
  const Value& condition = *node.inputs[0];
  if (condition.type == ElementType::boolean) return std::nullopt;
  return fmt::format("input 0 of Where, '{}', is {}; it has to be bool, as comparisons are", condition.name,
                     to_string(*condition.type));
}

/// The value of an attribute of the operator is not known; its type is.
std::optional<ElementType> type_of_reference(const Node& node) {
  if (!node.is("Constant") || node.attributes.size() != 1) return std::nullopt;
  const auto* reference = node.attributes.begin()->second.get<AttributeReference>();
  using Proto = ::onnx::AttributeProto;
  switch (reference == nullptr ? Proto::UNDEFINED : reference->onnx_type) {
    case Proto::FLOAT:
    case Proto::FLOATS: return ElementType::f32;
    case Proto::INT:
    case Proto::INTS: return ElementType::i64;
    case Proto::STRING: return ElementType::string;
    default: return std::nullopt;
  }
}

}  // namespace

std::optional<std::string> type_fault(Node& node) {
  if (auto fault = fault_of_inputs(node)) return fault;
  if (const auto type = type_of_reference(node)) {
    node.outputs.front()->type = type;
    return std::nullopt;
  }
  ContentsMap contents;
  NodeTypes types(node, contents);
  try {
    static_cast<void>(apply_shape_rule(types));
  } catch (const Error&) {
    const bool knows_attributes = std::none_of(node.attributes.begin(), node.attributes.end(), [](const auto& entry) {
      return entry.second.template get<AttributeReference>() != nullptr;
    });
    if (knows_attributes) throw;
  }
  return std::nullopt;
}

}  // namespace graft::onnx

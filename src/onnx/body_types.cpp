// Compares the types of each line of a text with ONNX's schemas.
#include "onnx/body_types.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <map>
#include <utility>

#include "onnx/low_precision.hpp"
#include "onnx/onnx-ml.pb.h"
#include "onnx/onnx_io.hpp"
#include "onnx/opset.hpp"
#include "onnx/schema_types.hpp"
#include "onnx/shape_rules.hpp"

namespace graft::onnx {
namespace {

bool is_constant(const Value& value) { return value.producer != nullptr && value.producer->is("Constant"); }

std::string two_types(const Node& node, const Value& a, const Value& b, const std::string& opset_words) {
  // The message suggests a Cast of the constant. If both values or neither are constants, it suggests a Cast of the
  // value in f32, because constants usually have that type.
  const bool casts_first = is_constant(a) != is_constant(b) ? is_constant(a) : a.type == ElementType::f32;
  const Value& cast = casts_first ? a : b;
  const Value& like = casts_first ? b : a;
  return fmt::format(
      "{} reads {} '{}' and {} '{}', which must have the same type{}: cast one in a line above, as in {}_cast = "
      "CastLike({}, {}), and pass the result to {}",
      node.op_type, to_string(*a.type), a.name, to_string(*b.type), b.name, opset_words, cast.name, cast.name,
      like.name, node.op_type);
}

std::string refused_type(const Node& node, std::size_t index, const TypeSet& allowed, const std::string& opset_words) {
  const Value& input = *node.inputs[index];
  std::string text =
      fmt::format("input {} of {}, '{}', is {}", index, node.op_type, input.name, to_string(*input.type));
  if (allowed.has_only(ElementType::boolean)) return text + "; it must be bool, like the result of a comparison";
  text += fmt::format(", but ONNX allows only {} there{}", allowed.to_string(), opset_words);
  if (!is_low_precision(input.type) || !allowed.contains(ElementType::f32)) return text;
  return text + fmt::format(
                    "; cast the input in a line above, as in {}_f32 = Cast<to=f32>({}), and cast the result of {} back",
                    input.name, input.name, node.op_type);
}

/// Returns why the types of the inputs violate the schema of one opset, or nothing if they are allowed. `opset_words`
/// names the opset in the message, as in " in operator set 18", or is empty for opset 17.
std::optional<std::string> fault_of_inputs(const Node& node, const SchemaTypes& types, const std::string& opset_words) {
  std::map<char, const Value*> first_of;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const Value* input = node.inputs[i];
    if (input == nullptr || !input->type) continue;
    const char letter = types.input_letter(i);
    const TypeSet* allowed = types.types_of(letter);
    if (allowed == nullptr) continue;
    const Value& first = *first_of.emplace(letter, input).first->second;
    if (*first.type != *input->type) return two_types(node, first, *input, opset_words);
    if (!allowed->contains(*input->type)) return refused_type(node, i, *allowed, opset_words);
  }
  return std::nullopt;
}

std::optional<std::string> fault_of_inputs(const Node& node, const FollowedRow& row) {
  std::optional<std::string> fault;
  const SchemaTypes* known = nullptr;
  std::int64_t opset = row.use == BodyUse::function ? row.oldest_opset : working_opset;
  for (; opset <= newest_opset; ++opset) {  // Newer opsets allow more types, with few exceptions.
    const SchemaTypes* types = find_schema_types(node.op_type, opset);
    if (types == nullptr || types == known) continue;
    known = types;
    auto found = fault_of_inputs(node, *types, opset == working_opset ? "" : fmt::format(" in operator set {}", opset));
    if (found && row.use == BodyUse::function) return found;
    if (!found && row.use == BodyUse::layers) return std::nullopt;
    if (!fault) fault = std::move(found);
  }
  return fault;
}

bool is_f8(ElementType type) { return type == ElementType::f8e4m3fn || type == ElementType::f8e5m2; }

/// Returns a fault if the node has an output in f8 although a model that uses the operator with the types in `row` may
/// have an opset before f8_opset, which has no f8; otherwise nothing.
std::optional<std::string> fault_of_outputs(const Node& node, const FollowedRow& row) {
  if (row.use != BodyUse::function || row.oldest_opset >= f8_opset) return std::nullopt;
  for (const Value* output : node.outputs) {
    if (output == nullptr || !output->type || !is_f8(*output->type)) continue;
    return fmt::format(
        "{} computes {} '{}', a type that ONNX has only in operator set {} and later, but a model may use operator set "
        "{}",
        node.op_type, to_string(*output->type), output->name, f8_opset, row.oldest_opset);
  }
  return std::nullopt;
}

/// Returns the element type of a Constant whose value is a reference to an attribute of the operator. The type of this
/// attribute is known, although its value is not. Returns nothing for other nodes.
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

std::int64_t oldest_opset_with(ElementType type) {
  if (is_f8(type)) return f8_opset;
  return type == ElementType::bf16 ? bf16_opset : working_opset;
}

std::optional<std::string> type_fault(Node& node, const FollowedRow& row) {
  if (auto fault = fault_of_inputs(node, row)) return fault;
  if (const auto type = type_of_reference(node)) {
    node.outputs.front()->type = type;
    return std::nullopt;
  }
  ContentsMap contents;
  NodeTypes types(node, contents);
  try {
    static_cast<void>(apply_shape_rule(types));
  } catch (const std::exception& error) {  // Also thrown for sizes that exceed 64 bits.
    const bool knows_attributes = std::none_of(node.attributes.begin(), node.attributes.end(), [](const auto& entry) {
      return entry.second.template get<AttributeReference>() != nullptr;
    });
    if (knows_attributes) return error.what();
  }
  return fault_of_outputs(node, row);
}

std::int64_t first_opset_for_types(const Node& node) {
  for (std::int64_t opset = working_opset; opset <= newest_opset; ++opset) {
    const SchemaTypes* types = find_schema_types(node.op_type, opset);
    if (types == nullptr || !fault_of_inputs(node, *types, "")) return opset;
  }
  return working_opset;
}

}  // namespace graft::onnx

// Compares the inferred types of a model with the table of ONNX's schemas.
#include "onnx/check_types.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "graft/error.hpp"
#include "onnx/faults.hpp"
#include "onnx/opset.hpp"
#include "onnx/schema_ports.hpp"
#include "onnx/schema_types.hpp"

namespace graft::onnx {
namespace {

/// The lowest opset for which Graft knows which types ONNX's schemas allow (schema_types.hpp).
constexpr std::int64_t first_known = 13;

/// Returns the types that an opset allows; null if they are not known. For an opset before 13, returns the types of
/// opset 13 if the operator had the same inputs.
const SchemaTypes* types_in(const std::string& op_type, std::int64_t opset) {
  if (opset >= first_known) return find_schema_types(op_type, opset);
  const SchemaPorts* ports = find_schema_ports(op_type, opset);
  const SchemaPorts* later = find_schema_ports(op_type, first_known);
  if (ports == nullptr || later == nullptr || ports->inputs != later->inputs) return nullptr;
  return find_schema_types(op_type, first_known);
}

/// Returns whether `type` is bf16 and bf16_opset allows it for the input. Conversions raise the opset of a network to
/// bf16_opset only if the network uses bf16.
bool is_allowed_later(const Node& node, std::size_t input, ElementType type) {
  if (type != ElementType::bf16) return false;
  const SchemaTypes* types = find_schema_types(node.op_type, bf16_opset);
  const TypeSet* allowed = types == nullptr ? nullptr : types->types_of(types->input_letter(input));
  return allowed != nullptr && allowed->contains(type);
}

std::optional<std::string> type_fault_in(const Node& node, std::int64_t opset) {
  const SchemaTypes* types = types_in(node.op_type, opset);
  if (types == nullptr) return std::nullopt;
  std::map<char, std::size_t> first_of;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const Value* input = node.inputs[i];
    if (input == nullptr || !input->type || !input->opaque.empty()) continue;
    const char letter = types->input_letter(i);
    const TypeSet* allowed = types->types_of(letter);
    if (allowed == nullptr) continue;
    const std::size_t first = first_of.emplace(letter, i).first->second;
    const Value& other = *node.inputs[first];
    if (*other.type != *input->type) {
      return fmt::format("inputs {} and {} of {} must have the same type, but are {} '{}' and {} '{}'", first, i,
                         node.op_type, to_string(*other.type), other.name, to_string(*input->type), input->name);
    }
    if (opset >= first_known && !allowed->contains(*input->type) && !is_allowed_later(node, i, *input->type)) {
      return fmt::format("input {} of {}, '{}', is {}, but ONNX allows only {} there", i, node.op_type, input->name,
                         to_string(*input->type), allowed->to_string());
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<TypeFault> find_type_faults(const Model& inferred, const AcceptsTypes& accepts) {
  const std::int64_t opset = inferred.graph().opset();
  std::vector<TypeFault> faults;
  std::size_t position = 0;
  for (const Node* outer : inferred.graph().nodes()) {
    const auto check = [&](const Node& node) {
      const std::size_t here = position++;
      if (!node.domain.empty() || inferred.functions.contains({node.domain, node.op_type, node.overload})) return;
      const auto fault = type_fault_in(node, opset);
      if (!fault || (accepts != nullptr && accepts(inferred, *outer))) return;
      faults.push_back(
          {here, fmt::format("{}: {}: {} (operator set {})", inferred.source, describe(node), *fault, opset)});
    };
    check(*outer);
    for (const Graph* inner : outer->subgraphs()) inner->for_each_node(check);
  }
  return faults;
}

std::string step_for_strings(const Model& model, const Value& input) {
  constexpr std::size_t most_named = 3;
  std::vector<std::string> named;
  std::size_t others = 0;
  model.graph().for_each_node([&](const Node& node) {
    if (std::find(node.inputs.begin(), node.inputs.end(), &input) == node.inputs.end()) return;
    if (named.size() < most_named) {
      named.push_back(describe(node));
    } else {
      ++others;
    }
  });
  if (others != 0)
    named.push_back(
        fmt::format("{} other node{} that read{} it", others, others == 1 ? "" : "s", others == 1 ? "s" : ""));
  const std::string nodes = named.empty() ? "" : fmt::format(" leave out {}, and", fmt::join(named, ", "));
  return fmt::format("Convert the strings to numbers before the network:{} make these numbers its inputs", nodes);
}

void check_has_outputs(const Model& model) {
  if (!model.graph().outputs().empty()) return;
  throw Error(
      fmt::format("{}: the graph has no outputs, so it computes nothing, and TensorRT does not build it\nDeclare the "
                  "outputs of the graph in the program that wrote the model",
                  model.source));
}

void check_types_and_outputs(const Model& model, const AcceptsTypes& accepts) {
  check_has_outputs(model);
  Model inferred = model.clone();
  infer_around_faults(inferred, [](const Node& /*node*/, const Error& /*error*/) {});
  const std::vector<TypeFault> faults = find_type_faults(inferred, accepts);
  if (faults.empty()) return;
  throw Error(fmt::format("{}\nInsert a Cast in the program that wrote the model", faults.front().message));
}

}  // namespace graft::onnx

#include "quant/plan/node_types.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "onnx/operator_node.hpp"
#include "onnx/schema.hpp"

namespace graft::quant {
namespace {

/// Returns whether the schema allows both f32 and f16 for its type variable `letter`. For Resize this is only true for
/// the type of the first input, because the inputs roi and scales are f32 in files of every opset.
bool can_narrow(const onnx::SchemaTypes& types, char letter) {
  const onnx::TypeSet* allowed = types.types_of(letter);
  return allowed != nullptr && allowed->contains(onnx::ElementType::f32) && allowed->contains(onnx::ElementType::f16) &&
         (types.name != "Resize" || letter == types.input_letter(0));
}

/// Returns whether a constant that is too large for the type may be replaced by the type's largest number. This is the
/// case if the node uses it as a bound or a mask, which only has to exceed all other elements.
bool may_saturate(const onnx::Node& node, double number) {
  if (is_any_of(node, {"Add", "Clip", "Max", "Min", "Pad", "Sub", "Where"})) return true;
  constexpr double stands_for_infinity = 1e8;
  return node.is("Mul") && std::abs(number) >= stands_for_infinity;
}

/// Returns whether a constant that is too small for the type may be replaced by the type's smallest positive number.
/// This is the case for an epsilon, which only has to be different from 0, and for a bias, which is added to larger
/// values.
bool may_grow(const onnx::Node& node, std::size_t input) {
  constexpr std::size_t bias = 2;
  return is_any_of(node, {"Add", "Clip", "Max", "Min", "Sum", "Where"}) ||
         (input == bias && is_any_of(node, {"Conv", "ConvTranspose", "Gemm"}));
}

// ---- The plan of a single node

NodePlan kept(std::string reason, bool by_form = true) {
  NodePlan plan;
  plan.type = NodeType::kept;
  plan.reason = std::move(reason);
  plan.by_form = by_form;
  return plan;
}

std::optional<std::string> reason_to_keep(const onnx::Node& node, const TypedOptions& options) {
  for (const onnx::Value* value : node.inputs) {
    if (value != nullptr && !value->type) return fmt::format("the type of its input '{}' is unknown", value->name);
    if (value != nullptr && value->producer != nullptr && value->producer->is("DequantizeLinear")) {
      return "it reads DequantizeLinear, so that TensorRT computes it in int8";
    }
  }
  for (const onnx::Value* value : node.outputs) {
    if (value == nullptr) continue;
    if (!value->type) return fmt::format("the type of its output '{}' is unknown", value->name);
    const auto mains = std::count(node.graph->outputs().begin(), node.graph->outputs().end(), value);
    if (std::cmp_greater(value->output_count, mains)) return "a sub-graph of If, Loop or Scan returns its output";
    if (!options.narrow_before_int8 && std::any_of(value->uses.begin(), value->uses.end(), [](const onnx::Use& use) {
          return use.node->is("QuantizeLinear");
        })) {
      return "QuantizeLinear reads its output, so that TensorRT computes it in int8";
    }
  }
  if (has_trait(node, onnx::trait::scales_integers)) return "it quantizes or dequantizes";
  return std::nullopt;
}

/// Returns the plan of a Graft node for computing in the type `narrow`: it uses the first type combination of the
/// operator that has `narrow` for the first input and that the node's ranks allow. The node stays in f32 if there is
/// none.
NodePlan operator_plan(const onnx::Node& node, onnx::ElementType narrow) {
  const auto op = make_operator(node);
  if (op == nullptr) return kept(unknown_operator_reason());
  if (!is_f32(node.input(0))) return kept("it is not an f32 operator");
  const OperatorType& type = op->type();
  const DType wanted = *to_dtype(narrow);
  std::vector<int> ranks;
  for (const onnx::Value* input : node.inputs) {
    ranks.push_back(input != nullptr && input->shape ? static_cast<int>(input->shape->size()) : -1);
  }
  for (const TypeRow& row : type.type_rows) {
    const bool is_linear = std::all_of(row.formats.begin(), row.formats.begin() + static_cast<long>(row.count),
                                       [](const Format& format) { return format.layout == Layout::linear; });
    if (!is_linear || row.formats[0].dtype != wanted || !op->accepts(row, ranks)) continue;
    NodePlan plan;
    plan.type = NodeType::narrow;
    const std::size_t given = node.inputs.size();
    for (std::size_t i = 0; i < given; ++i) {
      plan.inputs.push_back(is_f32(node.inputs[i]) && type.format_of(row, given, i).dtype == wanted);
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      plan.outputs.push_back(is_f32(node.outputs[i]) && type.format_of(row, given, given + i).dtype == wanted);
    }
    return plan;
  }
  return kept(fmt::format("{} has no {} form", type.name, narrow_name(narrow)));
}

NodePlan standard_plan(const onnx::Node& node, onnx::ElementType narrow) {
  if (!node.domain.empty()) return kept("the types that this operator accepts are unknown");
  NodePlan plan;
  plan.type = NodeType::narrow;
  if (node.is("Cast") || node.is("ConstantOfShape")) {
    plan.flexible = true;
    plan.inputs.assign(node.inputs.size(), false);
    plan.outputs.push_back(is_f32(node.output()));
    if (!plan.outputs[0]) plan.type = NodeType::none;
    return plan;
  }
  const onnx::SchemaTypes* types = types_to_narrow(node.op_type);
  if (types == nullptr) return kept(fmt::format("ONNX has {} in f32 only", node.op_type));
  const std::int64_t since = narrow_since(*types, narrow);
  if (since == 0) return kept(fmt::format("ONNX has no {} {}", narrow_name(narrow), node.op_type));
  if (node.graph->opset() < since) {
    return kept(fmt::format("ONNX has {} in {} from operator set {} on; the model uses {}", node.op_type,
                            narrow_name(narrow), since, node.graph->opset()));
  }
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    plan.inputs.push_back(is_f32(node.inputs[i]) && can_narrow(*types, types->input_letter(i)));
  }
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    plan.outputs.push_back(is_f32(node.outputs[i]) &&
                           (has_type_of_output(node) || can_narrow(*types, types->output_letter(i))));
  }
  const auto is_set = [](bool port) { return port; };
  if (std::none_of(plan.inputs.begin(), plan.inputs.end(), is_set)) {
    return kept(fmt::format("{} accepts f32 only", node.op_type));
  }
  plan.flexible =
      has_trait(node, onnx::trait::moves_data) || std::none_of(node.outputs.begin(), node.outputs.end(), is_f32);
  return plan;
}

std::optional<std::string> constants_that_do_not_fit(const onnx::Node& node, const NodePlan& plan,
                                                     onnx::ElementType narrow) {
  for (std::size_t i = 0; i < plan.inputs.size(); ++i) {
    const auto constant = plan.inputs[i] ? node.inputs[i]->constant() : std::nullopt;
    if (!constant) continue;
    const ConstantFit found = fit(*constant, narrow);
    if (found.beyond != 0 && !may_saturate(node, found.beyond)) {
      return fmt::format("its constant '{}' contains {:.4g}, which is beyond the range of {}", node.inputs[i]->name,
                         found.beyond, narrow_name(narrow));
    }
    if (found.vanishing != 0 && !may_grow(node, i)) {
      return fmt::format("its constant '{}', {:.4g}, would become 0", node.inputs[i]->name, found.vanishing);
    }
  }
  return std::nullopt;
}

// ---- Nodes that work in any type

/// The type that a value has or that a reader requires: f32, the narrow type (f16 or bf16), or either of them.
enum class Side : std::uint8_t { f32, narrow, either };

/// Returns the type in which a value is computed according to `plans`. Nodes in `from` whose type is still to be
/// decided count as f32. If `typed_io` is true, inputs of the network have the narrow type (f16 or bf16).
Side source_of(const NodePlans& plans, bool typed_io, const onnx::Value& value,
               const std::set<const onnx::Node*>& from) {
  if (value.constant()) return Side::either;
  if (value.producer == nullptr) return typed_io ? Side::narrow : Side::f32;
  const NodePlan& plan = plans.at(value.producer);
  if (plan.type != NodeType::narrow || !plan.outputs.at(value.output_index)) return Side::f32;
  return plan.flexible && from.contains(value.producer) ? Side::f32 : Side::narrow;
}

Side wanted_by(const NodePlans& plans, const onnx::Use& use) {
  const auto found = plans.find(use.node);
  if (found == plans.end()) return Side::f32;  // a node in an inner graph has no plan
  const NodePlan& plan = found->second;
  if (use.node->is("Cast") || plan.type == NodeType::none) return Side::either;
  if (plan.type == NodeType::kept || !plan.inputs.at(use.index)) return Side::f32;
  if (plan.flexible && !has_trait(*use.node, onnx::trait::moves_data)) return Side::either;
  return plan.type == NodeType::follows ? Side::f32 : Side::narrow;
}

/// Returns whether a node that computes the same result in any type (NodePlan::flexible) needs fewer Casts in f32 than
/// in the narrow type (f16 or bf16). Its inputs must be f32.
bool is_wanted_in_f32(const NodePlans& plans, bool typed_io, const onnx::Node& node, const NodePlan& plan) {
  bool narrow = false;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const onnx::Value* value = node.outputs[i];
    if (value == nullptr || !plan.outputs.at(i)) continue;
    if (value->output_count != 0) {
      if (!typed_io) return true;
      narrow = true;
    }
    for (const onnx::Use& use : value->uses) {
      const Side side = wanted_by(plans, use);
      if (side == Side::f32) return true;
      narrow = narrow || side == Side::narrow;
    }
  }
  return !narrow;
}

}  // namespace

bool has_f32_tensor(const onnx::Node& node) {
  return std::any_of(node.inputs.begin(), node.inputs.end(), is_f32) ||
         std::any_of(node.outputs.begin(), node.outputs.end(), is_f32);
}

std::string_view narrow_name(onnx::ElementType type) { return type == onnx::ElementType::f16 ? "f16" : "bf16"; }

double largest_number(onnx::ElementType type) {
  return verify::largest_of(type == onnx::ElementType::f16 ? report::Precision::f16 : report::Precision::bf16);
}

double smallest_number(onnx::ElementType type) {
  constexpr int f16_exponent = -24;
  constexpr int bf16_exponent = -133;
  return std::ldexp(1.0, type == onnx::ElementType::f16 ? f16_exponent : bf16_exponent);
}

ConstantFit fit(const onnx::TensorData& tensor, onnx::ElementType narrow) {
  ConstantFit result;
  std::vector<double> numbers = *tensor.numbers();
  const std::vector<double> rounded = *onnx::TensorData::from_numbers(narrow, tensor.dims, numbers).numbers();
  bool all_vanish = true;
  double vanishing = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    double& number = numbers[i];
    if (number != 0 && rounded[i] == 0) vanishing = number;
    all_vanish = all_vanish && rounded[i] == 0;
    if (std::isfinite(number) && !std::isfinite(rounded[i])) {
      result.beyond = number;
      number = std::copysign(largest_number(narrow), number);
    }
  }
  if (all_vanish && vanishing != 0) {
    result.vanishing = vanishing;
    for (double& number : numbers) {
      if (number != 0) number = std::copysign(smallest_number(narrow), number);
    }
  }
  result.converted = onnx::TensorData::from_numbers(narrow, tensor.dims, numbers);
  return result;
}

const onnx::SchemaTypes* types_to_narrow(std::string_view op_type) {
  const auto versions = onnx::schema_types(op_type);
  if (versions.empty()) return nullptr;
  const onnx::SchemaTypes& newest = versions.back();
  const bool can =
      std::any_of(newest.inputs.begin(), newest.inputs.end(), [&](char letter) { return can_narrow(newest, letter); });
  return can ? &newest : nullptr;
}

std::int64_t narrow_since(const onnx::SchemaTypes& newest, onnx::ElementType narrow) {
  const auto versions = onnx::schema_types(newest.name);
  std::int64_t since = 0;
  for (auto version = versions.rbegin(); version != versions.rend(); ++version) {
    for (std::size_t i = 0; i < std::min(version->inputs.size(), newest.inputs.size()); ++i) {
      if (!can_narrow(newest, newest.inputs[i])) continue;
      const onnx::TypeSet* allowed = version->types_of(version->inputs[i]);
      if (allowed != nullptr && allowed->contains(onnx::ElementType::f32) && !allowed->contains(narrow)) return since;
    }
    since = version->since;
  }
  return since;
}

bool has_type_of_output(const onnx::Node& node) {
  return is_any_of(node, {"Bernoulli", "EyeLike", "RandomNormalLike", "RandomUniformLike"});
}

NodePlan plan_node(const onnx::Node& node, const TypedOptions& options, const RefusedNodes& known) {
  const onnx::ElementType narrow = element_type_of(options.precision);
  if (node.is("Constant") || (!has_f32_tensor(node) && node.subgraphs().empty())) return {};
  if (!node.subgraphs().empty()) return kept("its sub-graphs are not converted");
  if (auto reason = reason_to_keep(node, options)) return kept(std::move(*reason));
  if (const auto found = known.find(key_of(node)); found != known.end()) return kept(found->second);
  NodePlan plan = node.domain == onnx_domain ? operator_plan(node, narrow) : standard_plan(node, narrow);
  if (plan.type == NodeType::kept) return plan;
  if (auto reason = constants_that_do_not_fit(node, plan, narrow)) return kept(std::move(*reason));
  const auto asked = options.kept.find(key_of(node));
  if (asked != options.kept.end()) return kept(asked->second, false);
  return plan;
}

void settle_flexible_nodes(NodePlans& plans, const std::vector<onnx::Node*>& nodes, bool typed_io) {
  std::set<const onnx::Node*> from;  // the nodes whose inputs are f32
  const auto reads_f32 = [&](const onnx::Node& node, const NodePlan& plan) {
    for (std::size_t i = 0; i < plan.inputs.size(); ++i) {
      if (plan.inputs[i] && source_of(plans, typed_io, *node.inputs[i], from) == Side::narrow) return false;
    }
    return true;
  };
  const auto is_open = [](const NodePlan& plan) { return plan.flexible && plan.type == NodeType::narrow; };
  for (const onnx::Node* node : nodes) {
    const NodePlan& plan = plans.at(node);
    if (is_open(plan) && reads_f32(*node, plan)) from.insert(node);
  }
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    NodePlan& plan = plans.at(*node);
    if (!is_open(plan) || !from.contains(*node)) continue;
    if (is_wanted_in_f32(plans, typed_io, **node, plan)) {
      plan.type = NodeType::follows;
    } else {
      from.erase(*node);
    }
  }
  // Nodes that only read tensors follow the types of their inputs, which are decided at this point.
  for (const onnx::Node* node : nodes) {
    NodePlan& plan = plans.at(node);
    const bool only_reads = std::none_of(node->outputs.begin(), node->outputs.end(), is_f32);
    if (plan.type == NodeType::follows && only_reads && !reads_f32(*node, plan)) plan.type = NodeType::narrow;
  }
}

}  // namespace graft::quant

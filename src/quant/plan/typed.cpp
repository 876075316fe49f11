// Converts a model to f16 or bf16: plans the type of each node (node_types.hpp), then inserts the casts that the plan
// needs.
#include "quant/plan/typed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "graft/error.hpp"
#include "graft/setting.hpp"
#include "onnx/body_types.hpp"
#include "onnx/functions.hpp"
#include "onnx/low_precision.hpp"
#include "onnx/operator_calls.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/opset.hpp"
#include "onnx/schema.hpp"
#include "onnx/schema_types.hpp"
#include "onnx/shape_inference.hpp"
#include "quant/plan/node_types.hpp"

namespace graft::quant {
namespace {

/// Returns the type of the first output or input of a node that is f16, bf16 or f64, or nothing if it has none.
std::optional<onnx::ElementType> other_float_of(const onnx::Node& node) {
  for (const std::vector<onnx::Value*>* values : {&node.outputs, &node.inputs}) {
    for (const onnx::Value* value : *values) {
      if (value == nullptr) continue;
      if (onnx::is_low_precision(value->type) || value->type == onnx::ElementType::f64) return value->type;
    }
  }
  return std::nullopt;
}

class Typing {
 public:
  Typing(const onnx::Model& prepared, const TypedOptions& options, const RefusedNodes& known)
      : options_(options), known_(known), narrow_(element_type_of(options.precision)) {
    result_.model = prepared.clone();
  }

  TypedModel run() {
    for (const onnx::Node* node : graph().nodes()) {
      NodePlan& plan = plans_.emplace(node, plan_node(*node, options_, known_)).first->second;
      plan.key = key_of(*node);
      plan.refused_in_f32 = plan.type == NodeType::narrow && refusal(*node);
    }
    settle_flexible_nodes(plans_, graph().nodes(), options_.typed_io);
    note_nodes();
    const std::vector<onnx::Value*> values = graph().values();
    for (onnx::Value* value : values) retype(*value);
    change_attributes();
    find_refused();
    graph().topological_sort();
    remove_idle_casts();
    graph().remove_dead();
    remove_unused_functions(result_.model);
    infer_shapes(result_.model);
    attach_functions(result_.model);
    return std::move(result_);
  }

  /// Returns the nodes that TypedOptions::refusal refused in the narrow type (f16 or bf16), with the reasons.
  [[nodiscard]] const RefusedNodes& refused() const { return refused_; }

 private:
  [[nodiscard]] onnx::Graph& graph() { return result_.model.graph(); }
  [[nodiscard]] const onnx::Graph& graph() const { return result_.model.graph(); }

  void note_nodes() {
    for (onnx::Node* node : graph().nodes()) {
      if (node->is("Constant")) continue;
      const NodePlan& plan = plans_.at(node);
      const bool has_other_type = plan.type == NodeType::none && !has_f32_tensor(*node);
      result_.nodes.push_back({.node = ref_of(*node),
                               .type = plan.type,
                               .reason = plan.reason,
                               .by_form = plan.by_form,
                               .before = has_other_type ? other_float_of(*node) : std::nullopt});
      if (plan.type == NodeType::kept) node->metadata[std::string(precision_note)] = "f32: " + plan.reason;
    }
  }

  [[nodiscard]] bool is_made_narrow(const onnx::Value& value) const {
    if (value.producer == nullptr) return value.is_input && options_.typed_io;
    const NodePlan& plan = plans_.at(value.producer);
    return plan.type == NodeType::narrow && plan.outputs.at(value.output_index);
  }

  [[nodiscard]] std::pair<std::vector<onnx::Use>, std::vector<onnx::Use>> readers_of(const onnx::Value& value) const {
    std::vector<onnx::Use> f32;
    std::vector<onnx::Use> narrow;
    for (const onnx::Use& use : value.uses) {
      const auto found = plans_.find(use.node);
      const bool is_any = found != plans_.end() && use.node->is("Cast");
      if (is_any) continue;
      const bool takes_narrow =
          found != plans_.end() && found->second.type == NodeType::narrow && found->second.inputs.at(use.index);
      (takes_narrow ? narrow : f32).push_back(use);
    }
    return {std::move(f32), std::move(narrow)};
  }

  onnx::Value* cast(onnx::Value& value, onnx::ElementType to, const std::string& name) {
    onnx::Node* node = graph().add_node("Cast", {&value}, {name});
    node->attributes.emplace("to", onnx::NodeAttribute(onnx::AttributeData(static_cast<std::int64_t>(to))));
    node->output()->type = to;
    node->output()->shape = value.shape;
    ++result_.casts;
    return node->output();
  }

  void redirect(const std::vector<onnx::Use>& uses, onnx::Value* to) {
    for (const onnx::Use& use : uses) use.node->graph->set_input(*use.node, use.index, to);
  }

  void retype(onnx::Value& value) {
    if (value.type != onnx::ElementType::f32) return;
    const auto [f32_readers, narrow_readers] = readers_of(value);
    if (const auto constant = value.constant()) {
      if (!narrow_readers.empty()) convert_constant(value, *constant, narrow_readers);
      return;
    }
    if (value.producer != nullptr && !plans_.contains(value.producer)) return;
    if (!is_made_narrow(value)) {
      if (!narrow_readers.empty()) {
        redirect(narrow_readers, cast(value, narrow_, value.name + "/" + std::string(narrow_name(narrow_))));
      }
      if (options_.typed_io && value.output_count != 0 && !value.is_input) make_output(value, narrow_);
      return;
    }
    value.type = narrow_;
    onnx::Value* wide = nullptr;
    if (!options_.typed_io && value.output_count != 0 && !value.is_input)
      wide = make_output(value, onnx::ElementType::f32);
    if (f32_readers.empty()) return;
    if (wide == nullptr) wide = cast(value, onnx::ElementType::f32, value.name + "/f32");
    redirect(f32_readers, wide);
  }

  /// Adds a Cast of `value` to `to`, makes its result an output of the graph in place of `value`, with the same name,
  /// and returns the result.
  onnx::Value* make_output(onnx::Value& value, onnx::ElementType to) {
    const std::string name = value.name;
    const std::string_view own = to == onnx::ElementType::f32 ? narrow_name(narrow_) : "f32";
    graph().rename(value, graph().unique_name(fmt::format("{}/{}", name, own)));
    onnx::Value* output = cast(value, to, name);
    for (std::size_t i = 0; i < graph().outputs().size(); ++i) {
      if (graph().outputs()[i] == &value) graph().replace_output(i, *output);
    }
    return output;
  }

  void convert_constant(onnx::Value& value, const onnx::TensorData& constant, const std::vector<onnx::Use>& readers) {
    const ConstantFit found = fit(constant, narrow_);
    const auto adjusted = [&](double was, double is) {
      result_.adjusted.push_back({value.name, fmt::format("{:.6g} became {:.6g}", was, is)});
    };
    if (found.beyond != 0) adjusted(found.beyond, std::copysign(largest_number(narrow_), found.beyond));
    if (found.vanishing != 0) adjusted(found.vanishing, std::copysign(smallest_number(narrow_), found.vanishing));
    const bool in_place = readers.size() == value.uses.size() && value.output_count == 0;
    if (in_place && value.producer == nullptr) {
      graph().set_initializer(value, found.converted);
      return;
    }
    if (in_place) {
      value.producer->attributes.clear();
      value.producer->attributes.emplace("value", onnx::NodeAttribute(onnx::AttributeData(found.converted)));
      value.type = narrow_;
      return;
    }
    redirect(readers, graph().add_constant(value.name + "/" + std::string(narrow_name(narrow_)), found.converted));
  }

  void change_attributes() {
    for (onnx::Node* node : graph().nodes()) {
      const auto found = plans_.find(node);
      if (found == plans_.end() || found->second.type != NodeType::narrow) continue;
      if (node->is("Cast")) {
        node->attributes.insert_or_assign("to",
                                          onnx::NodeAttribute(onnx::AttributeData(static_cast<std::int64_t>(narrow_))));
      } else if (has_type_of_output(*node) && found->second.outputs.at(0)) {
        node->attributes.insert_or_assign("dtype",
                                          onnx::NodeAttribute(onnx::AttributeData(static_cast<std::int64_t>(narrow_))));
      } else if (node->is("ConstantOfShape")) {
        const onnx::NodeAttribute* value = node->attribute("value");
        const onnx::TensorData* tensor = value == nullptr ? nullptr : value->get<onnx::TensorData>();
        const double number = tensor == nullptr ? 0 : tensor->scalar().value_or(0);
        node->attributes.insert_or_assign(
            "value", onnx::NodeAttribute(onnx::AttributeData(onnx::TensorData::from_numbers(narrow_, {1}, {number}))));
      }
    }
  }

  // ---- Nodes that are refused in the narrow type

  [[nodiscard]] std::optional<std::string> refusal(const onnx::Node& node) const {
    return options_.refusal && node.domain.empty() ? options_.refusal(node) : std::nullopt;
  }

  void find_refused() {
    for (const onnx::Node* node : graph().nodes()) {
      const auto found = plans_.find(node);
      if (found == plans_.end() || found->second.type != NodeType::narrow || found->second.refused_in_f32) continue;
      if (const auto reason = refusal(*node)) {
        refused_.emplace(found->second.key,
                         fmt::format("TensorRT does not build it in {}: {}", narrow_name(narrow_), *reason));
      }
    }
  }

  /// Removes the Cast nodes of the original model that have become identities, because their input has the target type.
  void remove_idle_casts() {
    for (onnx::Node* node : graph().nodes()) {
      if (!node->is("Cast") || node->input(0) == nullptr || node->input(0)->type != node->output()->type) continue;
      if (!plans_.contains(node) || node->input(0)->type != narrow_) continue;
      graph().replace_all_uses(*node->output(), *node->input(0));
    }
  }

  const TypedOptions& options_;
  const RefusedNodes& known_;  ///< The nodes that are kept in f32 because they are refused in the narrow type.
  onnx::ElementType narrow_;
  TypedModel result_;
  RefusedNodes refused_;
  NodePlans plans_;
};

/// Returns the lowest opset in which a node's operator allows bf16, or 0 if no opset up to `bf16_opset` does.
std::int64_t opset_of_bf16(const onnx::Node& node) {
  const onnx::SchemaTypes* types = node.domain.empty() ? types_to_narrow(node.op_type) : nullptr;
  const std::int64_t since = types == nullptr ? 0 : narrow_since(*types, onnx::ElementType::bf16);
  return since <= onnx::bf16_opset ? since : 0;
}

/// Returns the lowest opset, from 17 on, in which all nodes that support bf16 can compute in bf16.
std::int64_t opset_of_bf16(const onnx::Model& model) {
  std::int64_t needed = onnx::working_opset;
  for (const onnx::Node* node : std::as_const(model).graph().nodes()) {
    const auto op = make_operator(*node);
    if (op == nullptr) {
      needed = std::max(needed, opset_of_bf16(*node));
      continue;
    }
    FunctionInputs inputs = function_inputs(*node);
    inputs.dtype = DType::bf16;
    needed = std::max(needed, onnx::first_opset_of_function(*op, inputs));
  }
  return needed;
}

}  // namespace

onnx::ElementType element_type_of(report::Precision precision) {
  if (has_8_bits(precision)) {
    throw Error(Error::Kind::internal, "element_type_of: the precision has 8 bits; it must be f16 or bf16");
  }
  return precision == report::Precision::f16 ? onnx::ElementType::f16 : onnx::ElementType::bf16;
}

const std::string& key_of(const onnx::Node& node) {
  static const std::string none;
  const auto found =
      std::find_if(node.outputs.begin(), node.outputs.end(), [](const onnx::Value* value) { return value != nullptr; });
  return found == node.outputs.end() ? none : (*found)->name;
}

std::optional<std::string> note_on_f64(const onnx::Model& prepared, std::string_view wanted) {
  std::size_t nodes = 0;
  std::size_t in_f64 = 0;
  for (const onnx::Node* node : prepared.graph().nodes()) {
    if (node->is("Constant")) continue;
    ++nodes;
    if (!has_f32_tensor(*node) && other_float_of(*node) == onnx::ElementType::f64) ++in_f64;
  }
  if (in_f64 == 0) return std::nullopt;
  return fmt::format(
      "{} of {} nodes {} in f64, because only f32 becomes {}: export the network in f32 (in PyTorch, model.float() "
      "before the export), and quantize that model",
      in_f64, nodes, in_f64 == 1 ? "stays" : "stay", wanted);
}

std::string unknown_operator_reason() {
  return fmt::format("Graft does not know this operator; load its library with {}",
                     setting_name(Setting::operator_libraries));
}

bool works_in_any_type(const onnx::Node& node) {
  return has_trait(node, onnx::trait::moves_data) || is_any_of(node, {"Cast", "Constant", "ConstantOfShape"}) ||
         std::none_of(node.outputs.begin(), node.outputs.end(), is_f32);
}

onnx::Model prepare_for_types(const onnx::Model& model, report::Precision precision) {
  onnx::Model prepared = model.clone();
  for (onnx::Value* value : std::vector<onnx::Value*>(prepared.graph().inputs())) {
    if (value->initializer) prepared.graph().set_is_input(*value, false);
  }
  inline_functions(prepared, {.which = onnx::is_plain_call});
  adopt_drop_ins(prepared);
  upgrade_opset(prepared);
  if (precision == report::Precision::bf16) {
    const std::int64_t needed = opset_of_bf16(prepared);
    try {
      upgrade_opset(prepared, needed);
      if (needed > onnx::working_opset) prepared.ir_version = std::max(prepared.ir_version, onnx::bf16_ir_version);
    } catch (const Error& refused) {
      // Any other error means that a node has no equivalent in the newer opset. More nodes are then kept in f32.
      if (refused.kind() == Error::Kind::internal) throw;
    }
  }
  infer_shapes(prepared);
  return prepared;
}

std::string type_name(const TypedNode& node, report::Precision precision) {
  switch (node.type) {
    case NodeType::narrow: return std::string(to_string(precision));
    case NodeType::kept:
    case NodeType::follows: return "f32";
    case NodeType::none: break;
  }
  return node.before ? to_string(*node.before) : std::string();
}

TypedModel make_typed(const onnx::Model& prepared, const TypedOptions& options) {
  // Keeping a node in f32 changes the types around it, so that other nodes may be refused then.
  for (RefusedNodes known;;) {
    Typing typing(prepared, options, known);
    TypedModel typed = typing.run();
    if (typing.refused().empty()) return typed;
    known.insert(typing.refused().begin(), typing.refused().end());
  }
}

}  // namespace graft::quant

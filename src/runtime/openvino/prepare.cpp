// Functions are inlined, because OpenVINO's reader does not support them. Graft's operators become numbered nodes: each
// reader has its own table of operators, so that no operator names are registered for the whole process.
#include "runtime/openvino/prepare.hpp"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "core/plugin_form.hpp"
#include "onnx/check_operators.hpp"
#include "onnx/faults.hpp"
#include "onnx/functions.hpp"
#include "onnx/low_precision.hpp"
#include "onnx/operator_calls.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/opset.hpp"
#include "onnx/schema.hpp"
#include "onnx/shape_inference.hpp"
#include "runtime/model_io.hpp"
#include "runtime/openvino/antialias.hpp"
#include "runtime/openvino/guards.hpp"
#include "runtime/openvino/integer_arithmetic.hpp"

namespace graft::runtime {
namespace {

/// Replaces each input of the node that is a constant without elements with the result of a ConstantOfShape node of the
/// same shape. OpenVINO's reader (2026.4) reads such a constant as a scalar, but keeps the shape of a computed tensor.
void make_what_has_no_elements(onnx::Node& node) {
  onnx::Graph& graph = *node.graph;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const auto constant = node.inputs[i] == nullptr ? std::nullopt : node.inputs[i]->constant();
    if (!constant || constant->element_count() != 0 || constant->type == onnx::ElementType::string) continue;
    onnx::Value* shape = graph.add_constant("shape", onnx::TensorData::from_ints(constant->dims));
    onnx::Node* made = graph.add_node("ConstantOfShape", {shape}, {node.inputs[i]->name}, &node);
    made->attributes.emplace(
        "value", onnx::NodeAttribute(onnx::AttributeData(onnx::TensorData::from_numbers(constant->type, {1}, {0}))));
    made->output()->type = constant->type;
    made->output()->shape = node.inputs[i]->shape;
    graph.set_input(node, i, made->output());
  }
}

/// Applies make_what_has_no_elements to the operators for which an input without elements is an ordinary tensor and
/// does not mean that the input is left out.
void keep_shapes_without_elements(onnx::Graph& graph) {
  static const std::set<std::string_view> takes_any{"Concat",   "Gather",          "GatherElements", "GatherND",
                                                    "Identity", "ScatterElements", "ScatterND",      "Transpose"};
  graph.for_each_node([](onnx::Node& node) {
    if (node.domain.empty() && takes_any.contains(node.op_type)) make_what_has_no_elements(node);
  });
}

void place_operators(PreparedModel& prepared, bool in_declared_types) {
  prepared.model.graph().for_each_node([&](onnx::Node& node) {
    std::shared_ptr<const Operator> op = make_operator(node);
    if (op == nullptr) return;
    const OperatorType& type = op->type();
    arrange_inputs(node);
    make_what_has_no_elements(node);
    const bool ports_fit = node.inputs.size() >= type.required_input_count() &&
                           node.inputs.size() <= type.most_inputs() && node.outputs.size() <= type.output_count() &&
                           std::find(node.inputs.begin(), node.inputs.end(), nullptr) == node.inputs.end();
    if (!ports_fit) {
      throw Error(prepared.model.source + ": " + onnx::describe(node) + " has " + std::to_string(node.inputs.size()) +
                  " inputs and " + std::to_string(node.outputs.size()) + " outputs; " + std::string(type.name) +
                  " takes " + type.input_count_text() + " inputs and has " + std::to_string(type.output_count()) +
                  " outputs, and no input before the last may be left out");
    }
    PlacedOperator placed{std::move(op), onnx::describe(node), in_declared_types};
    node.attributes.clear();
    node.metadata.clear();
    node.op_type = engine_operator;
    node.domain = engine_domain;
    node.overload.clear();
    node.attributes.emplace(
        "index", onnx::NodeAttribute(onnx::AttributeData(static_cast<std::int64_t>(prepared.operators.size()))));
    prepared.operators.push_back(std::move(placed));
  });
  if (!prepared.operators.empty()) prepared.model.graph().opset_imports[std::string(engine_domain)] = 1;
}

/// Upgrades the model from an opset in which OpenVINO 2026.4 misreads an operator to the next opset that it reads
/// correctly. In opsets 11 and 12 it reads Softmax, LogSoftmax and Hardmax as in 13, where they work on one axis only.
/// In opsets 13 to 17 it ignores the `axes` of three reductions.
void raise_what_is_misread(onnx::Model& model) {
  const auto has = [&](const std::set<std::string_view>& names) {
    bool found = false;
    std::as_const(model.graph()).for_each_node([&](const onnx::Node& node) {
      found = found || (node.domain.empty() && names.contains(node.op_type));
    });
    return found;
  };
  std::int64_t opset = model.graph().opset();
  if ((opset == 11 || opset == 12) && has({"Softmax", "LogSoftmax", "Hardmax"})) opset = 13;
  if (opset >= 13 && opset <= 17 && has({"ReduceL1", "ReduceLogSum", "ReduceLogSumExp"})) opset = 18;
  if (opset != model.graph().opset()) upgrade_opset(model, opset);
}

bool has_cast_to_f16(const onnx::Model& model) {
  bool found = false;
  model.graph().for_each_node([&](const onnx::Node& node) {
    const bool to_f16 = node.is("Cast") && node.int_or("to", 0) == static_cast<std::int64_t>(onnx::ElementType::f16);
    found = found || to_f16 || node.is("CastLike");
  });
  return found;
}

/// Adds a rounding node after each node that computes f16 or bf16, or, without `round_inside`, after each cast to f16
/// (the reader rounds casts to bf16). OpenVINO's CPU plugin stores f16 and bf16 as f32.
void round_narrow_types(onnx::Model& model, bool round_inside) {
  if (!round_inside && !has_cast_to_f16(model)) return;
  infer_shapes(model);
  std::set<onnx::Graph*> changed;
  model.graph().for_each_node([&](onnx::Node& node) {
    // A node that only moves data reads values that are already rounded.
    if (node.domain == engine_domain || has_trait(node, onnx::trait::moves_data)) return;
    const std::vector<onnx::Value*> outputs = node.outputs;
    for (onnx::Value* output : outputs) {
      if (output == nullptr || !onnx::is_low_precision(output->type) || output->constant()) continue;
      const bool is_cast_to_f16 = is_any_of(node, {"Cast", "CastLike"}) && output->type == onnx::ElementType::f16;
      if (!round_inside && !is_cast_to_f16) continue;
      onnx::Graph& graph = *node.graph;
      onnx::Node* rounding =
          graph.add_node(std::string(engine_rounding), {output}, {output->name}, nullptr, std::string(engine_domain));
      rounding->attributes.emplace("to",
                                   onnx::NodeAttribute(onnx::AttributeData(static_cast<std::int64_t>(*output->type))));
      rounding->output()->type = output->type;
      rounding->output()->shape = output->shape;
      graph.replace_all_uses(*output, *rounding->output(), rounding);
      changed.insert(&graph);
    }
  });
  for (onnx::Graph* graph : changed) graph->topological_sort();
  if (!changed.empty()) model.graph().opset_imports[std::string(engine_domain)] = 1;
}

/// Returns whether the model has a node under the name of another library's plugin for which Graft's operator alone
/// does not suffice: further nodes compute the plugin's outputs from the operator's (has_own_outputs()).
bool has_plugins_with_own_outputs(const onnx::Model& model) {
  bool found = false;
  model.graph().for_each_node([&](const onnx::Node& node) {
    const DropIn* drop_in = find_operator_for(node).drop_in;
    found = found || (drop_in != nullptr && has_own_outputs(drop_in->plugin_name));
  });
  return found;
}

/// Infers the types of inner values if the file does not declare all of them, because the following steps depend on
/// types.
void infer_missing_types(onnx::Model& model) {
  bool lacks_any = false;
  model.graph().for_each_node([&](const onnx::Node& node) {
    for (const onnx::Value* output : node.outputs) lacks_any = lacks_any || (output != nullptr && !output->type);
  });
  if (lacks_any) infer_around_faults(model, [](onnx::Node& /*node*/, const Error& /*fault*/) {});
}

/// Removes inputs that no node reads. OpenVINO's reader drops them, and names do not always show which inputs it kept.
void remove_unused_inputs(onnx::Graph& graph) {
  for (onnx::Value* input : std::vector<onnx::Value*>(graph.inputs())) {
    if (!input->is_unused() || input->initializer) continue;
    graph.set_is_input(*input, false);
    graph.remove_value(*input);
  }
}

}  // namespace

PreparedModel prepare(const onnx::Model& model, const runtime::CompileOptions& options) {
  // Operators are checked before functions are attached and inlined, so that messages name the nodes of the file.
  check_operators(model);
  if (options.kernels != runtime::OperatorKernels::functions) check_has_kernels(model);
  PreparedModel prepared{.model = model.clone(), .operators = {}};
  onnx::Model& copy = prepared.model;
  add_extra_outputs(copy, options.extra_outputs);
  if (options.kernels == runtime::OperatorKernels::functions) {
    inline_functions(copy);
    attach_functions(copy);
    inline_functions(copy);
  } else {
    inline_functions(copy, {.which = onnx::is_plain_call});
    if (has_plugins_with_own_outputs(copy)) adopt_drop_ins(copy);
  }
  infer_missing_types(copy);
  compute_antialias(copy);
  prepared.integers = compute_integers(copy);
  round_narrow_types(copy, options.round_inside);
  place_operators(prepared, options.kernels == runtime::OperatorKernels::own);
  inline_functions(copy);
  raise_what_is_misread(copy);
  keep_shapes_without_elements(copy.graph());
  copy.graph().remove_dead();
  remove_unused_inputs(copy.graph());
  refuse_known_faults(copy);
  return prepared;
}

}  // namespace graft::runtime

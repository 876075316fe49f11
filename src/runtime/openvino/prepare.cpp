// Functions are inlined, because OpenVINO's reader does not know them; operators become numbered nodes, because each
// reader is given its own table of operators and so needs no names registered for the whole process.
#include "runtime/openvino/prepare.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

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

/// OpenVINO's reader takes a constant without elements for a scalar (2026.4); a tensor that is made keeps its shape.
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

/// Of nodes for which an input without elements is a tensor like others, and does not stand for one that is left out.
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
                  " takes " + type.input_count_text() + " and " + std::to_string(type.output_count()) +
                  ", none left out");
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

/// What OpenVINO 2026.4 misreads in some operator sets becomes that of the next one in which it is right: Softmax,
/// LogSoftmax and Hardmax of 11 and 12, taken for those of 13, which run over one axis alone; in 13 to 17 three
/// reductions, whose `axes` it does not see.
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

/// The plugin holds f16 and bf16 as f32, so a node of our own rounds after each node that makes one, or, without
/// `round_inside`, after each cast to f16; the reader does so for casts to bf16.
void round_narrow_types(onnx::Model& model, bool round_inside) {
  if (!round_inside && !has_cast_to_f16(model)) return;
  infer_shapes(model);
  std::set<onnx::Graph*> changed;
  model.graph().for_each_node([&](onnx::Node& node) {
    // What was rounded before it was moved still is.
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

/// Infers the types of inner values where a file does not declare all of them: the steps that follow decide by types.
void infer_missing_types(onnx::Model& model) {
  bool lacks_any = false;
  model.graph().for_each_node([&](const onnx::Node& node) {
    for (const onnx::Value* output : node.outputs) lacks_any = lacks_any || (output != nullptr && !output->type);
  });
  if (lacks_any) infer_around_faults(model, [](onnx::Node& /*node*/, const Error& /*fault*/) {});
}

/// OpenVINO's reader drops such inputs, and then names cannot always tell which inputs it kept.
void remove_unused_inputs(onnx::Graph& graph) {
  for (onnx::Value* input : std::vector<onnx::Value*>(graph.inputs())) {
    if (!input->is_unused() || input->initializer) continue;
    graph.set_is_input(*input, false);
    graph.remove_value(*input);
  }
}

}  // namespace

PreparedModel prepare(const onnx::Model& model, const runtime::CompileOptions& options) {
  // Before functions are attached and inlined: messages have the names of the file's nodes.
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

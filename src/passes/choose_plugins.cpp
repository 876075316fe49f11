// Pass choose_plugins: decides for every node that an operator of Graft can stand for how TensorRT will run it, and
// says why.
#include <fmt/format.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graft/registry.hpp"
#include "onnx/functions.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/plugin_reason.hpp"
#include "passes/passes.hpp"
#include "passes/pipeline.hpp"
#include "passes/rewriter.hpp"

namespace graft::passes {
namespace {

/// A standard operator that one of Graft's has as its native form, read off that form: `y =
/// LeakyRelu<alpha=@alpha>(x)`.
struct NativeForm {
  const OperatorType* type = nullptr;
  std::map<std::string, std::string, std::less<>> attributes;  ///< The standard operator's, to Graft's.
};

/// By the type of the standard operator.
using NativeForms = std::map<std::string, NativeForm, std::less<>>;

NativeForms native_forms() {
  NativeForms result;
  for (const OperatorType* type : operators()) {
    const auto text =
        onnx::native_form_of(*type->create(), {.dtype = DType::f32, .count = type->input_count(), .rank = -1});
    if (!text) continue;
    onnx::Graph form;
    for (std::size_t i = 0; i < type->input_count(); ++i) form.add_input(type->input_name(i));
    parse_body(form, *type, "native form", *text);
    const std::vector<onnx::Node*> nodes = form.nodes();
    if (nodes.size() != 1 || nodes[0]->inputs != form.inputs()) continue;
    NativeForm native{type, {}};
    bool all_referenced = true;
    for (const auto& [name, value] : nodes[0]->attributes) {
      const auto* reference = value.get<onnx::AttributeReference>();
      all_referenced = all_referenced && reference != nullptr;
      if (reference != nullptr) native.attributes.emplace(name, reference->name);
    }
    if (all_referenced) result.emplace(nodes[0]->op_type, std::move(native));
  }
  return result;
}

std::optional<DType> dtype_of(const onnx::Node& node) {
  const onnx::Value* x = node.input(0);
  return x == nullptr || !x->type ? std::nullopt : to_dtype(*x->type);
}

/// Graft's operator in the place of a standard one; null where it has none for this node.
std::shared_ptr<Operator> operator_for_native(const NativeForms& forms, const onnx::Node& node) {
  const auto found = node.domain.empty() ? forms.find(node.op_type) : forms.end();
  const auto dtype = dtype_of(node);
  if (found == forms.end() || !dtype) return nullptr;
  const NativeForm& native = found->second;
  if (!native.type->output_dtypes(std::vector<DType>(node.inputs.size(), *dtype))) return nullptr;
  std::shared_ptr<Operator> op = native.type->create();
  for (const auto& [theirs, ours] : native.attributes) {
    const onnx::NodeAttribute* given = node.attribute(theirs);
    const auto value =
        given != nullptr ? given->value() : onnx::default_attribute(node.op_type, theirs, node.graph->opset());
    if (value && !op->set(ours, *value).ok()) return nullptr;
  }
  return op;
}

std::vector<std::string> input_names(const onnx::Node& node) {
  std::vector<std::string> names;
  for (const onnx::Value* input : node.inputs) names.push_back(input == nullptr ? "" : input->name);
  return names;
}

Proposal proposal_for(onnx::Node& node, std::string replacement, std::string reason) {
  Proposal proposal{.nodes = {&node},
                    .inputs = {},
                    .outputs = {},
                    .replacement = std::move(replacement),
                    .reason = std::move(reason),
                    .by_definition = "",
                    .edit = {}};
  for (onnx::Value* input : node.inputs) {
    if (input != nullptr) proposal.inputs.push_back(input);
  }
  for (onnx::Value* output : node.outputs) {
    if (output != nullptr && !output->is_unused()) proposal.outputs.push_back(output);
  }
  return proposal;
}

/// Replaces a node of Graft by standard ones with `replace`, and says whether that was done.
bool replace(Rewriter& rewriter, onnx::Node& node, std::string replacement, const std::string& reason,
             bool (*replace_node)(onnx::Node&), std::string by_definition = "") {
  Proposal proposal = proposal_for(node, std::move(replacement), reason);
  proposal.by_definition = std::move(by_definition);
  if (proposal.outputs.empty()) return false;
  proposal.edit = [name = proposal.outputs.front()->name, replace_node](onnx::Graph& graph) {
    replace_node(*graph.find(name)->producer);
  };
  return rewriter.apply(proposal);
}

/// Says that a node runs as a plugin, and writes the reason on it, where inspect and build find it. Nothing of one
/// whose operator does not take the types of its inputs: no plugin runs that, as the verdict on the node says.
void choose_plugin(Rewriter& rewriter, onnx::Node& node, const NodeRef& who, const std::string& name,
                   const std::string& reason) {
  const onnx::OperatorMatch match = onnx::find_operator_for(node);
  if (match && onnx::type_refused_by_plugin(*match.type, node)) return;
  node.metadata[std::string(onnx::reason_note)] = reason;
  rewriter.choose(who, name, OperatorChoice::Kind::plugin, reason);
}

/// Of a node that lies where TensorRT builds no plugin. Regions of bodies often have shapes that nothing tells, so that
/// they cannot be run by themselves; the function that a node carries defines what it computes.
void choose_without_plugin(Rewriter& rewriter, onnx::Node& node, const Operator& op, const std::string& refusal) {
  using enum OperatorChoice::Kind;
  const NodeRef who = ref_of(node);
  const std::string name(op.type().name);
  const bool is_typed = dtype_of(node).has_value();
  if (const auto form = is_typed ? onnx::native_form_of(op, function_inputs(node)) : std::nullopt) {
    const std::string reason = fmt::format("TensorRT has this as one layer of its own, exact and as fast: {}", *form);
    if (replace(rewriter, node, *form, reason, onnx::replace_with_native_form)) {
      rewriter.choose(who, name, native, reason);
      return;
    }
  }
  if (is_typed && onnx::function_of(op, function_inputs(node))) {
    if (replace(rewriter, node, "the body of its ONNX function", refusal, onnx::replace_with_function_body,
                "by definition: the function is what the node means in every runtime without Graft")) {
      rewriter.choose(who, name, function, refusal);
      return;
    }
  }
  choose_plugin(rewriter, node, who, name, fmt::format("standard operators cannot take its place, though {}", refusal));
}

void choose_for_operator(Rewriter& rewriter, onnx::Node& node) {
  using enum OperatorChoice::Kind;
  const std::shared_ptr<Operator> op = make_operator(node);
  const NodeRef who = ref_of(node);
  const std::string name(op->type().name);
  const PluginMode mode = rewriter.options().plugins;
  if (const std::string refusal = rewriter.refusal_of_plugin_in(*node.graph); !refusal.empty()) {
    choose_without_plugin(rewriter, node, *op, refusal);
    return;
  }
  if (const auto kept = node.metadata.find(onnx::keep_note); kept != node.metadata.end()) {
    choose_plugin(rewriter, node, who, name, kept->second);
    return;
  }
  if (mode == PluginMode::always) {
    choose_plugin(rewriter, node, who, name, "asked for: plugins wherever they can stand");
    return;
  }
  const auto dtype = dtype_of(node);
  if (const auto form = dtype ? onnx::native_form_of(*op, function_inputs(node)) : std::nullopt) {
    const std::string reason = fmt::format("TensorRT has this as one layer of its own, exact and as fast: {}", *form);
    if (replace(rewriter, node, *form, reason, onnx::replace_with_native_form)) {
      rewriter.choose(who, name, native, reason);
      return;
    }
  }
  if (mode == PluginMode::never && dtype && onnx::function_of(*op, function_inputs(node))) {
    const std::string reason = "asked for: no plugins; standard operators compute the same";
    if (replace(rewriter, node, "the body of its ONNX function", reason, onnx::replace_with_function_body)) {
      rewriter.choose(who, name, function, reason);
      return;
    }
  }
  node.metadata.erase(std::string(onnx::reason_note));  // of an earlier conversion, which may have been asked otherwise
  const std::string reason = mode == PluginMode::never
                                 ? "no plugins were asked for, but standard operators cannot take its place here"
                                 : reason_for_plugin(node);
  choose_plugin(rewriter, node, who, name, reason);
}

void choose_for_standard(Rewriter& rewriter, const NativeForms& forms, onnx::Node& node) {
  using enum OperatorChoice::Kind;
  const std::shared_ptr<Operator> op = operator_for_native(forms, node);
  if (op == nullptr || node.output() == nullptr) return;
  const NodeRef who = ref_of(node);
  const std::string_view name = op->type().name;
  const std::string refusal = rewriter.refusal_of_plugin_in(*node.graph);
  if (rewriter.options().plugins == PluginMode::always && !refusal.empty()) {
    rewriter.choose(who, name, native, fmt::format("TensorRT runs {} itself; {}", node.op_type, refusal));
    return;
  }
  if (rewriter.options().plugins == PluginMode::always) {
    const std::string reason = "asked for: plugins wherever they can stand";
    Proposal proposal = proposal_for(node, to_text(*op), reason);
    proposal.edit = operator_edit(op, input_names(node), node.output()->name);
    const std::string output = node.output()->name;
    onnx::Graph& graph = *node.graph;
    if (!proposal.outputs.empty() && rewriter.apply(proposal)) {
      choose_plugin(rewriter, *graph.find(output)->producer, who, std::string(name), reason);
      return;
    }
  }
  rewriter.choose(who, name, native, fmt::format("TensorRT runs {} itself, exact and as fast", node.op_type));
}

}  // namespace

void choose_plugins(Rewriter& rewriter) {
  const NativeForms forms = native_forms();
  for (onnx::Graph* graph : rewriter.graphs()) {
    for (onnx::Node* node : graph->nodes()) {
      if (find_operator_for(*node)) {
        choose_for_operator(rewriter, *node);
      } else {
        choose_for_standard(rewriter, forms, *node);
      }
    }
  }
}

}  // namespace graft::passes

// Pass choose_plugins: decides for every node that a Graft operator can compute whether TensorRT runs it as a native
// layer, as standard operators or as a plugin, and records the reason.
//
//   graft::LeakyReLU<alpha=0.1>(x)   becomes   LeakyRelu<alpha=0.1>(x)          if TensorRT has one layer for it
//   LeakyRelu<alpha=0.1>(x)          becomes   graft::LeakyReLU<alpha=0.1>(x)   with Plugins::always
//   graft::Op(x)                     becomes   the body of its ONNX function    with Plugins::never, and in the body
//                                                                               of an If, Loop or Scan
#include <fmt/format.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graft/operator/registry.hpp"
#include "onnx/functions.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/plugin_reason.hpp"
#include "passes/passes.hpp"
#include "passes/pipeline.hpp"
#include "passes/rewriter.hpp"

namespace graft::passes {
namespace {

/// A Graft operator that equals one standard node, such as `y = LeakyRelu<alpha=@alpha>(x)`, where @alpha is the
/// attribute `alpha` of the Graft operator. Describes how the attributes of both correspond.
struct NativeForm {
  const OperatorType* type = nullptr;
  std::map<std::string, std::string, std::less<>> attributes;  ///< The Graft attribute for each standard attribute.
};

/// The Graft operators that are equal to one standard node, by the operator type of that node.
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

/// Returns the Graft operator that computes the same as a standard node, with its attributes set, or null if no
/// operator matches the node or supports its types.
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

/// Proposes to replace a Graft node by standard nodes, for which `replace_node` edits the graph. `replacement` and
/// `reason` are for the report. If `by_definition` is not empty, it is the proof, and nothing is run. Returns whether
/// the node was replaced. Returns false if the proof fails or if no output of the node is used.
bool replace(Rewriter& rewriter, onnx::Node& node, std::string replacement, const std::string& reason,
             bool (*replace_node)(onnx::Node&), std::string by_definition = "") {
  Proposal proposal = propose_for(node, std::move(replacement), reason);
  proposal.by_definition = std::move(by_definition);
  if (proposal.outputs.empty()) return false;
  proposal.edit = [name = proposal.outputs.front()->name, replace_node](onnx::Graph& graph) {
    replace_node(*graph.find(name)->producer);
  };
  return rewriter.apply(proposal);
}

/// Records in the report that the node, described by `who`, runs as the plugin `name`, and writes the reason into its
/// metadata, where `graft inspect` and `graft build` read it. Does nothing if the operator does not accept the types of
/// the node's inputs: no plugin can run such a node, and `graft inspect` reports it.
void choose_plugin(Rewriter& rewriter, onnx::Node& node, const NodeRef& who, const std::string& name,
                   const std::string& reason) {
  const onnx::OperatorMatch match = onnx::find_operator_for(node);
  if (match && onnx::type_refused_by_plugin(*match.type, node)) return;
  node.metadata[std::string(onnx::reason_note)] = reason;
  rewriter.choose(who, name, OperatorChoice::Kind::plugin, reason);
}

/// Replaces a Graft node in the body of an If, Loop or Scan, where TensorRT builds no plugin, by its native form or,
/// without one, by the body of its ONNX function. If neither is possible, the node stays and is recorded as a plugin.
/// `refusal` is the reason for the report.
void choose_without_plugin(Rewriter& rewriter, onnx::Node& node, const Operator& op, const std::string& refusal) {
  using enum OperatorChoice::Kind;
  const NodeRef who = ref_of(node);
  const std::string name(op.type().name);
  const bool is_typed = dtype_of(node).has_value();
  if (const auto form = is_typed ? onnx::native_form_of(op, function_inputs(node)) : std::nullopt) {
    const std::string reason = fmt::format("TensorRT has one native layer for this, exact and as fast: {}", *form);
    if (replace(rewriter, node, *form, reason, onnx::replace_with_native_form)) {
      rewriter.choose(who, name, native, reason);
      return;
    }
  }
  if (is_typed && onnx::function_of(op, function_inputs(node))) {
    if (replace(rewriter, node, "the body of its ONNX function", refusal, onnx::replace_with_function_body,
                "by definition: every runtime without Graft runs the function that the node carries")) {
      rewriter.choose(who, name, function, refusal);
      return;
    }
  }
  choose_plugin(rewriter, node, who, name, fmt::format("standard operators cannot replace it, although {}", refusal));
}

void choose_for_operator(Rewriter& rewriter, onnx::Node& node) {
  using enum OperatorChoice::Kind;
  const std::shared_ptr<Operator> op = make_operator(node);
  const NodeRef who = ref_of(node);
  const std::string name(op->type().name);
  const Plugins mode = rewriter.options().plugins;
  if (const std::string refusal = rewriter.refusal_of_plugin_in(*node.graph); !refusal.empty()) {
    choose_without_plugin(rewriter, node, *op, refusal);
    return;
  }
  if (const auto kept = node.metadata.find(onnx::keep_note); kept != node.metadata.end()) {
    choose_plugin(rewriter, node, who, name, kept->second);
    return;
  }
  if (mode == Plugins::always) {
    choose_plugin(rewriter, node, who, name, "requested: plugins wherever possible");
    return;
  }
  const auto dtype = dtype_of(node);
  if (const auto form = dtype ? onnx::native_form_of(*op, function_inputs(node)) : std::nullopt) {
    const std::string reason = fmt::format("TensorRT has one native layer for this, exact and as fast: {}", *form);
    if (replace(rewriter, node, *form, reason, onnx::replace_with_native_form)) {
      rewriter.choose(who, name, native, reason);
      return;
    }
  }
  if (mode == Plugins::never && dtype && onnx::function_of(*op, function_inputs(node))) {
    const std::string reason = "requested: no plugins; standard operators compute the same result";
    if (replace(rewriter, node, "the body of its ONNX function", reason, onnx::replace_with_function_body)) {
      rewriter.choose(who, name, function, reason);
      return;
    }
  }
  node.metadata.erase(std::string(onnx::reason_note));  // the note of an earlier conversion, perhaps with other options
  const std::string reason = mode == Plugins::never
                                 ? "no plugins were requested, but standard operators cannot replace this node"
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
  if (rewriter.options().plugins == Plugins::always && !refusal.empty()) {
    rewriter.choose(who, name, native, fmt::format("TensorRT runs {} itself; {}", node.op_type, refusal));
    return;
  }
  if (rewriter.options().plugins == Plugins::always) {
    const std::string reason = "requested: plugins wherever possible";
    Proposal proposal = propose_for(node, to_text(*op), reason);
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

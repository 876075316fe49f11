// Fuses activations into the instance normalizations before them.
#include "ops/instance_norm/fusion/activation.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graft/operator/registry.hpp"
#include "onnx/operator_node.hpp"
#include "ops/instance_norm/fusion/ranks.hpp"
#include "passes/fuse.hpp"

namespace graft::passes::instance_norm {
namespace {

/// Returns the attributes of InstanceNorm that express an activation node, or nothing for another node.
std::optional<std::vector<NamedAttribute>> activation_of(const onnx::Node& node) {
  using Attributes = std::vector<NamedAttribute>;
  if (node.is("Relu")) return Attributes{{"activation", std::string("relu")}};
  if (node.is("LeakyRelu")) {
    return Attributes{{"activation", std::string("leaky_relu")}, {"alpha", node.float_or("alpha", 0.01F)}};
  }
  const auto op = find_operator_for(node) ? make_operator(node) : nullptr;
  if (op == nullptr || op->type().name != "LeakyReLU") return std::nullopt;
  return Attributes{{"activation", std::string("leaky_relu")}, {"alpha", op->get("alpha").value()}};
}

/// The operator that a normalization node without an activation computes, and its inputs, with scale and bias in f32.
struct Norm {
  std::shared_ptr<Operator> op;
  std::vector<onnx::Value*> inputs;
  /// The scale and the bias, if they are constants that are converted to f32; they replace inputs 1 and 2.
  std::vector<std::vector<float>> constants;
};

std::optional<Norm> norm_of(const onnx::Node& node) {
  if (node.is("InstanceNormalization")) {
    Norm norm{find_operator("InstanceNorm")->create(), {node.input(0)}, {}};
    if (!norm.op->set("epsilon", node.float_or("epsilon", 1e-5F)).ok()) return std::nullopt;
    for (std::size_t i = 1; i < 3; ++i) {
      onnx::Value* value = node.input(i);
      if (value == nullptr) return std::nullopt;
      const auto constant = value->constant();
      const auto numbers = constant ? constant->numbers() : std::nullopt;
      if (!numbers && value->type != onnx::ElementType::f32) return std::nullopt;
      if (value->type == onnx::ElementType::f32) {
        norm.inputs.push_back(value);
      } else {
        norm.constants.emplace_back(numbers->begin(), numbers->end());
      }
    }
    if (!norm.constants.empty() && norm.inputs.size() > 1) return std::nullopt;
    return norm;
  }
  if (node.op_type != "InstanceNorm" || node.domain != onnx_domain) return std::nullopt;
  Norm norm{make_operator(node), node.inputs, {}};
  if (norm.op->get("activation") != AttributeValue(std::string("none"))) return std::nullopt;
  return norm;
}

}  // namespace

void fuse_activations(Rewriter& rewriter, onnx::Graph& graph) {
  for (onnx::Node* node : graph.nodes()) {
    const auto norm = norm_of(*node);
    if (!norm || node->output() == nullptr || !node->output()->type || !node->input(0)->rank()) continue;
    onnx::Value& normalized = *node->output();
    // A Transpose between the two nodes may stay, because the activation is applied to each element separately.
    onnx::Node* next = normalized.uses.size() == 1 ? normalized.uses[0].node : nullptr;
    onnx::Node* between = next != nullptr && next->is("Transpose") ? next : nullptr;
    if (between != nullptr) next = between->output()->uses.size() == 1 ? between->output()->uses[0].node : nullptr;
    if (next == nullptr || next->graph != &graph || next->output() == nullptr) continue;
    const auto activation = activation_of(*next);
    if (!activation) continue;
    const auto dtype = to_dtype(*normalized.type);
    if (!dtype || !is_floating_point(*dtype) || *node->input(0)->rank() < least_rank ||
        *node->input(0)->rank() > most_rank) {
      continue;
    }
    const auto near = [&](const std::string& reason) {
      rewriter.near_miss("InstanceNorm, activation",
                         {.node = next, .matched_nodes = 2, .pattern_nodes = 2, .reason = reason});
    };
    const onnx::Value& before = between != nullptr ? *between->output() : normalized;
    if (before.is_output() || normalized.is_output()) {
      near(fmt::format("'{}' inside the match is an output of the graph", before.name));
      continue;
    }
    if (const Status status = norm->op->set(*activation); !status.ok()) {
      near(status.message());
      continue;
    }
    if (!is_wanted(rewriter, *norm->op, *node->input(0), *next->output(),
                   norm->inputs.size() + norm->constants.size())) {
      continue;
    }
    std::vector<std::string> names;
    for (const onnx::Value* value : norm->inputs) names.push_back(value == nullptr ? "" : value->name);
    std::vector<onnx::Node*> nodes{node};
    if (between != nullptr) nodes.push_back(between);
    nodes.push_back(next);
    rewriter.apply({.nodes = nodes,
                    .inputs = {node->input(0)},
                    .outputs = {next->output()},
                    .replacement = to_text(*norm->op),
                    .reason = "the activation becomes part of InstanceNorm",
                    .by_definition = "",
                    .edit = [op = norm->op, names, constants = norm->constants, y_name = next->output()->name,
                             permutation = between == nullptr ? std::optional<std::vector<std::int64_t>>()
                                                              : between->ints("perm")](onnx::Graph& edited) {
                      onnx::Value* y = edited.find(y_name);
                      onnx::Node* old = y->producer;
                      std::vector<onnx::Value*> inputs;
                      for (const std::string& name : names)
                        inputs.push_back(name.empty() ? nullptr : edited.find(name));
                      for (const auto& numbers : constants) {
                        inputs.push_back(
                            edited.add_constant(y_name + "_parameter", onnx::TensorData::from_floats(numbers)));
                      }
                      onnx::Node* made = add_operator_node(edited, *op, inputs, {y_name + "_normalized"}, old);
                      made->name = old->name;
                      if (permutation) {
                        made = edited.add_node("Transpose", {made->output()}, {y_name + "_transposed"}, old);
                        made->attributes["perm"] = onnx::NodeAttribute(onnx::AttributeData(*permutation));
                      }
                      edited.move_output(*old, y->output_index, *made, 0);
                    }});
  }
}

}  // namespace graft::passes::instance_norm

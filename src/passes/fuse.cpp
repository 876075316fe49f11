// Matches patterns and proposes the operator that each match stands for.
#include "passes/fuse.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

namespace graft::passes {

void fuse(Rewriter& rewriter, onnx::Graph& graph, const onnx::Pattern& pattern, std::string_view why,
          const std::function<Fusion(const onnx::Match&)>& read) {
  const onnx::MatchResult result = find_matches(pattern, graph);
  for (const onnx::NearMiss& near : result.near_misses) rewriter.near_miss(pattern.name(), near);
  for (const onnx::Match& match : result.matches) {
    const Fusion found = read(match);
    if (found.op == nullptr) {
      rewriter.near_miss(pattern.name(), match, found.obstacle);
      continue;
    }
    onnx::Value& x = match.value("x");
    onnx::Value* y = match.root->output();
    if (!is_wanted(rewriter, *found.op, x, *y)) continue;
    rewriter.apply({.nodes = match.nodes,
                    .inputs = {&x},
                    .outputs = {y},
                    .replacement = to_text(*found.op),
                    .reason = std::string(why),
                    .by_definition = "",
                    .edit = operator_edit(found.op, {x.name}, y->name)});
  }
}

std::string obstacle_of_x(const onnx::Match& match, std::string_view op_name) {
  const onnx::Value& x = match.value("x");
  const onnx::Value& y = *match.root->output();
  if (!x.type) return fmt::format("the element type of '{}' is unknown", x.name);
  const auto dtype = to_dtype(*x.type);
  if (!dtype || !is_floating_point(*dtype)) {
    return fmt::format("'{}' is {}; {} supports f32, f16 and bf16", x.name, to_string(*x.type), op_name);
  }
  if (!x.rank()) return fmt::format("the rank of '{}' is unknown", x.name);
  if (y.rank() && *y.rank() != *x.rank()) {
    return fmt::format("a constant with more dimensions than '{}' raises the rank of the result from {} to {}", x.name,
                       *x.rank(), *y.rank());
  }
  return "";
}

bool is_wanted(Rewriter& rewriter, const Operator& op, const onnx::Value& x, const onnx::Value& y, std::size_t inputs) {
  const auto dtype = x.type ? to_dtype(*x.type) : std::nullopt;
  const int rank = static_cast<int>(x.rank().value_or(-1));
  return dtype && rewriter.is_wanted(op, {.dtype = *dtype, .count = inputs, .rank = rank}, x, y);
}

std::optional<std::vector<onnx::Node*>> nodes_between(const std::vector<const onnx::Value*>& inputs,
                                                      const onnx::Value& y, std::string& why_not,
                                                      bool (*may_stay)(const onnx::Node&)) {
  std::unordered_set<const onnx::Node*> inside;
  std::vector<const onnx::Value*> waiting{&y};
  while (!waiting.empty()) {
    const onnx::Value* value = waiting.back();
    waiting.pop_back();
    const bool is_input = std::find(inputs.begin(), inputs.end(), value) != inputs.end();
    if (value == nullptr || is_input || value->constant()) continue;
    if (value->producer == nullptr || value->graph != y.graph) {
      why_not = fmt::format("the match also depends on '{}', which is not one of its inputs", value->name);
      return std::nullopt;
    }
    if (!inside.insert(value->producer).second) continue;
    for (const onnx::Value* input : value->producer->inputs) waiting.push_back(input);
  }
  std::vector<onnx::Node*> result;
  for (onnx::Node* node : y.graph->nodes()) {
    if (!inside.contains(node)) continue;
    result.push_back(node);
    if (node == y.producer || (may_stay != nullptr && may_stay(*node))) continue;
    for (const onnx::Value* output : node->outputs) {
      const bool is_number_of_shape = output != nullptr && output->type && !is_floating_point(*output->type);
      if (output == nullptr || is_number_of_shape) continue;
      if (output->is_output()) {
        why_not = fmt::format("'{}' inside the match is an output of the graph", output->name);
        return std::nullopt;
      }
      for (const onnx::Use& use : output->uses) {
        if (inside.contains(use.node) || use.node->is("Shape")) continue;
        why_not = fmt::format("'{}' inside the match is used by {} too", output->name, onnx::describe(*use.node));
        return std::nullopt;
      }
    }
  }
  return result;
}

}  // namespace graft::passes

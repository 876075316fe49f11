// Copies the body node by node. The copies of its values get their names after the body, which holds the names, is
// removed.
#include "passes/cleanup/inline_branch.hpp"

#include <fmt/format.h>

#include "onnx/copy.hpp"
#include "onnx/origin_note.hpp"

namespace graft::passes {
namespace {

/// Renames all values inside the bodies of a node to unique names, because other copies of the node have bodies with
/// the same names.
void rename_inside(onnx::Node& node) {
  for (onnx::Graph* inner : node.subgraphs()) {
    for (onnx::Value* value : inner->values()) inner->rename(*value, inner->unique_name(value->name));
    for (onnx::Node* each : inner->nodes()) rename_inside(*each);
  }
}

}  // namespace

NodeNames::NodeNames(const onnx::Graph& graph) {
  for (const onnx::Node* node : graph.nodes()) taken_.emplace(node->name, 0);
}

std::string NodeNames::add(const std::string& name) {
  if (taken_.emplace(name, 0).second) return name;
  std::size_t& suffix = taken_[name];  // stays valid when names are added
  for (;;) {
    std::string result = fmt::format("{}~{}", name, ++suffix);
    if (taken_.emplace(result, 0).second) return result;
  }
}

BodyCopies::BodyCopies(onnx::Node& node, const onnx::Graph& body, Shapes shapes, NodeNames& names)
    : node_(node), body_(body), graph_(*node.graph), shapes_(shapes), names_(names) {}

std::vector<onnx::Value*> BodyCopies::add(const std::vector<onnx::Value*>& inputs) {
  values_.clear();
  for (std::size_t i = 0; i < inputs.size(); ++i) values_.emplace(body_.inputs()[i], inputs[i]);
  for (const onnx::Node* inner : body_.nodes()) {
    onnx::Node* copy = onnx::copy_node(*inner, graph_, [&](onnx::Value* value) { return look_up(value); });
    if (!copy->name.empty()) copy->name = names_.add(copy->name);
    if (shapes_ == Shapes::inferred) note_origin(*copy, stands_for(*inner));
    if (copies_ != 0) rename_inside(*copy);
  }
  ++copies_;
  std::vector<onnx::Value*> outputs;
  for (onnx::Value* output : body_.outputs()) outputs.push_back(look_up(output));
  return outputs;
}

void BodyCopies::finish(const std::vector<onnx::Value*>& results) {
  for (std::size_t i = 0; i < node_.outputs.size(); ++i) {
    if (node_.outputs[i] != nullptr) graph_.replace_all_uses(*node_.outputs[i], *results[i]);
  }
  graph_.remove_node(node_);
  rename_values();
  graph_.topological_sort();
}

void BodyCopies::rename_values() {
  // The names are free after the body is removed.
  for (const auto& [value, name] : made_) {
    if (!value->is_output()) graph_.rename(*value, graph_.unique_name(name));
  }
}

/// Returns the copy of a value of the body, which is created at the first call. Returns a value from outside the body
/// unchanged.
onnx::Value* BodyCopies::look_up(onnx::Value* value) {
  if (value->graph != &body_) return value;
  if (const auto known = values_.find(value); known != values_.end()) return known->second;
  if (const auto known = constants_.find(value); known != constants_.end()) return known->second;
  onnx::Value* copy = graph_.make_value(value->name);
  onnx::copy_facts(*value, *copy);
  if (shapes_ == Shapes::inferred && !value->initializer) {
    // No rule infers the shapes of operators outside of the standard.
    if (value->producer != nullptr && value->producer->domain.empty()) copy->shape.reset();
    if (copy->container) copy->container->shape.reset();
  }
  (value->initializer ? constants_ : values_).emplace(value, copy);
  made_.emplace_back(copy, value->name);
  return copy;
}

void inline_branch(onnx::Node& node, const onnx::Graph& branch) {
  NodeNames names(*node.graph);
  BodyCopies copies(node, branch, BodyCopies::Shapes::same, names);
  copies.finish(copies.add({}));
}

}  // namespace graft::passes

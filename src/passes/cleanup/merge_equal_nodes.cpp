// Passes merge_transposes and merge_equal_nodes: keep one of several nodes that have the same operator, attributes and
// inputs.
//
//   a = Shape(x); b = Shape(x); y = Mul(a, b)   becomes   a = Shape(x); y = Mul(a, a)
//
// Exporters write a shape, a reduction or a Transpose once for each place that needs it. Constants are the same if
// their bytes are. Transposes are merged before patterns are matched, because a pattern expects one input; other nodes
// are merged afterwards, because patterns need inner values that nothing else reads.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "onnx/model.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/schema.hpp"
#include "onnx/standard_operators.hpp"
#include "passes/passes.hpp"
#include "passes/rewriter.hpp"

namespace graft::passes {
namespace {

/// Returns whether nodes of this operator are never merged: random operators and Dropout, because their results differ,
/// and Constant, because a pass that edits the constant of one node must not change the other.
bool is_kept_apart(const onnx::Node& node) {
  return (onnx::traits_of(node.op_type) & onnx::trait::random) != 0 || node.op_type == "Dropout" ||
         node.op_type == "Constant";
}

/// The size limit, in bytes, for comparing constants by value. Larger constants are equal only if they share the same
/// memory.
constexpr std::size_t most_compared_bytes = 1 << 12;

std::string text_of(const onnx::TensorData& tensor) {
  std::string text = fmt::format("{}[{}]", to_string(tensor.type), fmt::join(tensor.dims, ","));
  if (tensor.strings) return text + fmt::format("{}", static_cast<const void*>(tensor.strings.get()));
  if (tensor.bytes.size() > most_compared_bytes)
    return text + fmt::format("{}", static_cast<const void*>(tensor.bytes.data()));
  return text.append(tensor.bytes.view());
}

/// Appends the type and the value of an attribute to `text`. Returns false, and appends nothing, for kinds of
/// attributes that are not compared, such as graphs.
bool add_text(std::string& text, const onnx::NodeAttribute& attribute) {
  if (const auto* tensor = attribute.get<onnx::TensorData>()) {
    text += text_of(*tensor);
    return true;
  }
  if (const auto* strings = attribute.get<std::vector<std::string>>()) {
    for (const std::string& one : *strings) text += fmt::format("{}:{}", one.size(), one);
    return true;
  }
  const auto value = attribute.value();
  if (!value) return false;
  const std::string written = graft::to_string(*value);
  text += fmt::format("{}:{}:{}", value->index(), written.size(), written);
  return true;
}

/// Decides whether a node returns the same results for the same inputs. This holds for ONNX operators except random
/// ones, for Graft's own operators, and for functions that consist of such nodes. Operators of other domains may keep a
/// state, so they count as not deterministic.
class Determinism {
 public:
  explicit Determinism(const onnx::Model& model) : model_(model) {}

  [[nodiscard]] bool holds_for(const onnx::Node& node) {
    if (is_kept_apart(node)) return false;
    const auto function = model_.functions.find({node.domain, node.op_type, node.overload});
    if (function != model_.functions.end()) return holds_for(function->second);
    return find_operator_for(node) || (node.domain.empty() && onnx::first_version(node.op_type) > 0);
  }

 private:
  bool holds_for(const onnx::FunctionDefinition& function) {
    // A function that calls itself counts as not deterministic, which ends the recursion. It is refused elsewhere.
    const auto [known, is_new] = functions_.try_emplace(&function, false);
    if (!is_new) return known->second;
    bool all = true;
    const onnx::Graph& body = *function.body;
    body.for_each_node([&](const onnx::Node& node) { all = all && (node.is("Constant") || holds_for(node)); });
    functions_.at(&function) = all;
    return all;
  }

  const onnx::Model& model_;
  std::unordered_map<const onnx::FunctionDefinition*, bool> functions_;
};

class Merger {
 public:
  explicit Merger(Rewriter& rewriter) : rewriter_(rewriter), determinism_(rewriter.model()) {}

  /// Merges equal nodes of the operator `op_type`, or of all operators if `op_type` is empty.
  void run(onnx::Graph& graph, std::string_view op_type = "") {
    std::unordered_map<std::string, onnx::Node*> first;
    for (onnx::Node* node : graph.nodes()) {
      if (!op_type.empty() && !node->is(op_type)) continue;
      const std::string key = key_of(*node);
      if (key.empty()) continue;
      const auto [found, is_new] = first.emplace(key, node);
      if (!is_new) merge(graph, *found->second, *node);
    }
  }

 private:
  /// Returns a string that is equal for nodes that compute the same results, or an empty string for a node that must
  /// not be merged.
  std::string key_of(const onnx::Node& node) {
    if (!determinism_.holds_for(node) || !node.subgraphs().empty() || node.outputs.empty() || !node.opaque.empty())
      return "";
    std::string key = fmt::format("{}|{}|{}|{}", node.domain, node.op_type, node.overload, node.outputs.size());
    for (const auto& [name, attribute] : node.attributes) {
      key += fmt::format("|{}=", name);
      if (!add_text(key, attribute)) return "";
    }
    for (const onnx::Value* input : node.inputs) key += "|" + key_of(input);
    return key;
  }

  std::string key_of(const onnx::Value* value) {
    if (value == nullptr) return "";
    const auto [found, is_new] = keys_.try_emplace(value);
    if (!is_new) return found->second;
    const auto constant = value->constant();
    found->second = constant ? text_of(*constant) : fmt::format("{}", static_cast<const void*>(value));
    return found->second;
  }

  void merge(onnx::Graph& graph, onnx::Node& kept, onnx::Node& other) {
    for (std::size_t i = 0; i < kept.outputs.size(); ++i) {
      const onnx::Value* a = kept.outputs[i];
      const onnx::Value* b = other.outputs[i];
      // Each output of the network needs its own node.
      if ((a == nullptr) != (b == nullptr) || (b != nullptr && b->is_output())) return;
    }
    rewriter_.record({.nodes = {ref_of(other)}}, onnx::describe(kept),
                     "both compute the same result from the same inputs",
                     "by definition: the same operator, attributes and inputs");
    for (std::size_t i = 0; i < kept.outputs.size(); ++i) {
      if (other.outputs[i] != nullptr) graph.replace_all_uses(*other.outputs[i], *kept.outputs[i]);
    }
  }

  Rewriter& rewriter_;
  Determinism determinism_;
  std::unordered_map<const onnx::Value*, std::string> keys_;
};

}  // namespace

void merge_transposes(Rewriter& rewriter) {
  for (onnx::Graph* graph : rewriter.graphs()) Merger(rewriter).run(*graph, "Transpose");
}

void merge_equal_nodes(Rewriter& rewriter) {
  for (onnx::Graph* graph : rewriter.graphs()) Merger(rewriter).run(*graph);
}

}  // namespace graft::passes

// Compares attributes by name, inputs by position, and bodies node by node.
#include "verify/localize/node_differences.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>

#include "core/comparison_text.hpp"
#include "onnx/text.hpp"
#include "verify/compare/compare.hpp"
#include "verify/compare/rearrangement.hpp"

namespace graft::verify {
namespace {

std::string full_name(const onnx::Node& node) {
  return node.domain.empty() ? node.op_type : node.domain + "::" + node.op_type;
}

std::string said_of(const onnx::NodeAttribute* attribute) {
  return attribute == nullptr ? "not set" : to_text(*attribute);
}

std::string shortened(const std::string& text) {
  constexpr std::size_t longest = 80;
  return text.size() <= longest ? text : text.substr(0, longest) + "...";
}

std::string input_text(const onnx::Value* value, const std::optional<onnx::TensorData>& constant) {
  if (value == nullptr) return "absent";
  return constant ? "the constant " + constant->type_and_shape() : fmt::format("the computed '{}'", value->name);
}

/// Returns a description of how a weight of the candidate differs from that of the reference. If a change of order or a
/// factor explains the difference, the description names it. Returns an empty string if both agree.
std::string weight_text(const onnx::TensorData& reference, const onnx::TensorData& candidate) {
  const Tolerance rounding = [&] {
    const Tolerance left = rewrite_tolerance(reference.type);
    const Tolerance right = rewrite_tolerance(candidate.type);
    return left.relative > right.relative ? left : right;
  }();
  const Difference difference =
      compare(reference, candidate, reference.type == candidate.type ? Tolerance{} : rounding);
  if (difference.equal()) return "";
  std::string text;
  if (const auto order = find_rearrangement(reference, candidate, rounding)) {
    text = order->text + "; ";
  } else if (const auto scale = find_scale(reference, candidate, rounding)) {
    text = *scale + "; ";
  }
  return text + difference_text(difference);
}

std::string sides(const std::string& reference, const std::string& candidate) {
  return fmt::format("{} in the reference, {} in the candidate", reference, candidate);
}

bool holds_graphs(const onnx::NodeAttribute* attribute) {
  return attribute != nullptr && (attribute->kind() == "graph" || attribute->kind() == "graphs");
}

/// Returns the subgraphs that an attribute contains; empty for null and for attributes of other kinds.
std::vector<const onnx::Graph*> graphs_of(const onnx::NodeAttribute* attribute) {
  std::vector<const onnx::Graph*> graphs;
  if (attribute == nullptr) return graphs;
  if (const auto* graph = attribute->get<std::unique_ptr<onnx::Graph>>()) graphs.push_back(graph->get());
  if (const auto* several = attribute->get<std::vector<std::unique_ptr<onnx::Graph>>>()) {
    for (const auto& graph : *several) graphs.push_back(graph.get());
  }
  return graphs;
}

/// Returns the nodes of a graph except Constant nodes, whose values are compared as inputs of other nodes.
std::vector<const onnx::Node*> computing_nodes(const onnx::Graph& graph) {
  std::vector<const onnx::Node*> nodes;
  for (const onnx::Node* node : graph.nodes()) {
    if (!node->is("Constant")) nodes.push_back(node);
  }
  return nodes;
}

void compare_types(const onnx::Node& reference, const onnx::Node& candidate, std::vector<std::string>& found) {
  for (std::size_t i = 0; i < std::min(reference.outputs.size(), candidate.outputs.size()); ++i) {
    const onnx::Value* left = reference.outputs[i];
    const onnx::Value* right = candidate.outputs[i];
    if (left == nullptr || right == nullptr || !left->type || !right->type || left->type == right->type) continue;
    found.push_back("type: " + sides(to_string(*left->type), to_string(*right->type)));
  }
}

class Comparison {
 public:
  explicit Comparison(const ModelPair& models) : models_(models) {}

  std::vector<std::string> nodes(const onnx::Node& reference, const onnx::Node& candidate) {
    if (full_name(reference) != full_name(candidate)) {
      return {"operator: " + sides(full_name(reference), full_name(candidate))};
    }
    std::vector<std::string> found;
    compare_attributes(reference, candidate, found);
    compare_inputs(reference, candidate, found);
    compare_types(reference, candidate, found);
    const onnx::FunctionDefinition* left = models_.reference.find_function(reference);
    const onnx::FunctionDefinition* right = models_.candidate.find_function(candidate);
    if (left != nullptr && right != nullptr) {
      compare_graphs(fmt::format("function {}", full_name(candidate)), *left->body, *right->body, found);
    }
    const std::int64_t opset = reference.graph->opset(reference.domain);
    const std::int64_t other = candidate.graph->opset(candidate.domain);
    if (found.empty() && opset != other) {
      found.push_back("operator set: " + sides(fmt::format("{}", opset), fmt::format("{}", other)));
    }
    for (std::size_t i = 0; i < std::min(reference.outputs.size(), candidate.outputs.size()); ++i) {
      if (reference.outputs[i] != nullptr && candidate.outputs[i] != nullptr)
        inner_.emplace(candidate.outputs[i], reference.outputs[i]);
    }
    return found;
  }

 private:
  void compare_attributes(const onnx::Node& reference, const onnx::Node& candidate, std::vector<std::string>& found) {
    std::set<std::string> names;
    for (const onnx::Node* node : {&reference, &candidate}) {
      for (const auto& [name, attribute] : node->attributes) names.insert(name);
    }
    for (const std::string& name : names) {
      const onnx::NodeAttribute* left = reference.attribute(name);
      const onnx::NodeAttribute* right = candidate.attribute(name);
      if (holds_graphs(left) || holds_graphs(right)) {
        compare_bodies(name, graphs_of(left), graphs_of(right), found);
        continue;
      }
      const auto* expected = left == nullptr ? nullptr : left->get<onnx::TensorData>();
      const auto* given = right == nullptr ? nullptr : right->get<onnx::TensorData>();
      if (expected != nullptr && given != nullptr) {
        const std::string text = weight_text(*expected, *given);
        if (!text.empty()) found.push_back(fmt::format("attribute {}: {}", name, text));
      } else if (said_of(left) != said_of(right)) {
        found.push_back(
            fmt::format("attribute {}: {}", name, sides(shortened(said_of(left)), shortened(said_of(right)))));
      }
    }
  }

  void compare_bodies(const std::string& name, const std::vector<const onnx::Graph*>& reference,
                      const std::vector<const onnx::Graph*>& candidate, std::vector<std::string>& found) {
    if (reference.size() != candidate.size()) {
      found.push_back(
          fmt::format("attribute {}: {}", name,
                      sides(fmt::format("{} graphs", reference.size()), fmt::format("{} graphs", candidate.size()))));
      return;
    }
    for (std::size_t i = 0; i < reference.size(); ++i) compare_graphs(name, *reference[i], *candidate[i], found);
  }

  void compare_graphs(const std::string& where, const onnx::Graph& reference, const onnx::Graph& candidate,
                      std::vector<std::string>& found) {
    const std::vector<const onnx::Node*> left = computing_nodes(reference);
    const std::vector<const onnx::Node*> right = computing_nodes(candidate);
    if (left.size() != right.size()) {
      found.push_back(fmt::format("{}: {}", where,
                                  sides(fmt::format("{} nodes", left.size()), fmt::format("{} nodes", right.size()))));
      return;
    }
    for (std::size_t i = 0; i < std::min(reference.inputs().size(), candidate.inputs().size()); ++i) {
      inner_.emplace(candidate.inputs()[i], reference.inputs()[i]);
    }
    for (std::size_t i = 0; i < left.size(); ++i) {
      for (const std::string& text : nodes(*left[i], *right[i])) {
        found.push_back(fmt::format("{}, {}: {}", where, onnx::describe(*right[i]), text));
      }
    }
    for (std::size_t i = 0; i < std::min(reference.outputs().size(), candidate.outputs().size()); ++i) {
      const std::string text = value_text(*reference.outputs()[i], *candidate.outputs()[i]);
      if (!text.empty()) found.push_back(fmt::format("{}, output {}: {}", where, i, text));
    }
  }

  [[nodiscard]] const onnx::Value* partner(const onnx::Value& of_candidate) const {
    const auto found = inner_.find(&of_candidate);
    return found == inner_.end() ? models_.partner(of_candidate) : found->second;
  }

  /// Returns whether both values exist and are known not to correspond to each other.
  [[nodiscard]] bool is_another(const onnx::Value* reference, const onnx::Value* candidate) const {
    if (reference == nullptr || candidate == nullptr) return false;
    const onnx::Value* expected = partner(*candidate);
    return expected != nullptr && expected != reference;
  }

  /// Returns a description of both values, constants or the names of tensors, if they are known to differ; otherwise an
  /// empty string.
  [[nodiscard]] std::string value_text(const onnx::Value& reference, const onnx::Value& candidate) const {
    const auto expected = reference.constant();
    const auto given = candidate.constant();
    if (expected && given) return weight_text(*expected, *given);
    if (expected.has_value() == given.has_value() && !is_another(&reference, &candidate)) return "";
    return sides(input_text(&reference, expected), input_text(&candidate, given));
  }

  /// Returns the index of another input with which the input at index `first` was exchanged between the two nodes, or
  /// nothing.
  [[nodiscard]] std::optional<std::size_t> exchanged_with(const onnx::Node& reference, const onnx::Node& candidate,
                                                          std::size_t first) const {
    const onnx::Value* left = reference.input(first);
    const onnx::Value* right = candidate.input(first);
    if (!is_another(left, right)) return std::nullopt;
    for (std::size_t i = 0; i < std::min(reference.inputs.size(), candidate.inputs.size()); ++i) {
      const onnx::Value* other = candidate.input(i);
      if (other != nullptr && partner(*right) == reference.input(i) && partner(*other) == left) return i;
    }
    return std::nullopt;
  }

  [[nodiscard]] std::string input_difference(std::size_t i, const onnx::Value* reference,
                                             const onnx::Value* candidate) const {
    const auto expected = reference == nullptr ? std::nullopt : reference->constant();
    const auto given = candidate == nullptr ? std::nullopt : candidate->constant();
    if (reference == nullptr || candidate == nullptr) {
      if (reference == candidate) return "";
      return fmt::format("input {}: {}", i, sides(input_text(reference, expected), input_text(candidate, given)));
    }
    const std::string text = value_text(*reference, *candidate);
    if (text.empty()) return "";
    return expected && given ? fmt::format("constant '{}' (input {}): {}", candidate->name, i, text)
                             : fmt::format("input {}: {}", i, text);
  }

  void compare_inputs(const onnx::Node& reference, const onnx::Node& candidate, std::vector<std::string>& found) const {
    for (std::size_t i = 0; i < std::max(reference.inputs.size(), candidate.inputs.size()); ++i) {
      const auto other = exchanged_with(reference, candidate, i);
      std::string text;
      if (!other) {
        text = input_difference(i, reference.input(i), candidate.input(i));
      } else if (*other > i) {
        text = fmt::format(
            "inputs {} and {} are exchanged: '{}' and '{}' in the reference, '{}' and '{}' in the candidate", i, *other,
            reference.input(i)->name, reference.input(*other)->name, candidate.input(i)->name,
            candidate.input(*other)->name);
      }
      if (!text.empty()) found.push_back(std::move(text));
    }
  }

  const ModelPair& models_;
  /// Maps values in subgraphs and in compared nodes of the candidate to the corresponding values of the reference.
  std::unordered_map<const onnx::Value*, const onnx::Value*> inner_;
};

}  // namespace

std::optional<std::vector<std::string>> part_differences(const ModelPair& models,
                                                         const std::vector<const onnx::Node*>& reference,
                                                         const std::vector<const onnx::Node*>& candidate) {
  if (reference.size() != candidate.size()) return std::nullopt;
  Comparison comparison(models);
  if (reference.size() == 1) return comparison.nodes(*reference.front(), *candidate.front());
  std::vector<std::string> found;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    if (full_name(*reference[i]) != full_name(*candidate[i])) return std::nullopt;
    for (const std::string& text : comparison.nodes(*reference[i], *candidate[i])) {
      found.push_back(fmt::format("{}: {}", onnx::describe(*candidate[i]), text));
    }
  }
  return found;
}

}  // namespace graft::verify

// Visits the nodes in topological order.
#include "verify/inputs/random_values.hpp"

#include <fmt/format.h>

#include "onnx/schema.hpp"

namespace graft::verify {
namespace {

bool draws_numbers(const onnx::Node& node) {
  if (has_trait(node, onnx::trait::random)) return true;
  if (!node.is("Dropout") || node.input(2) == nullptr) return false;
  const auto is_zero = [&](std::size_t input) {
    const auto constant = node.input(input) == nullptr ? std::nullopt : node.input(input)->constant();
    return constant && constant->scalar() == 0.0;
  };
  return !is_zero(2) && !is_zero(1);  // The training mode, and the ratio of dropped elements.
}

class RandomValueFinder {
 public:
  explicit RandomValueFinder(const onnx::Model& model) : model_(model) {}

  RandomValues run() {
    for (const onnx::Node* node : model_.graph().nodes()) {
      const std::string source = source_of(*node);
      if (source.empty()) continue;
      for (const onnx::Value* output : node->outputs) {
        if (output != nullptr) random_.emplace(output, source);
      }
    }
    return std::move(random_);
  }

 private:
  /// Returns a description of the random node on which the outputs of a node depend, or an empty string. For a node
  /// with bodies, any random node or random value inside counts, whichever output depends on it.
  [[nodiscard]] std::string source_of(const onnx::Node& node) {
    if (draws_numbers(node)) return onnx::describe(node);
    if (has_trait(node, onnx::trait::reads_shape)) return "";
    for (const onnx::Value* input : node.inputs) {
      const auto found = input == nullptr ? random_.end() : random_.find(input);
      if (found != random_.end()) return found->second;
    }
    for (const onnx::Graph* body : node.subgraphs()) {
      for (const onnx::Node* inner : body->nodes()) {
        if (std::string source = source_of(*inner); !source.empty()) return source;
      }
    }
    const onnx::FunctionDefinition* function = model_.find_function(node);
    return function == nullptr ? "" : source_in(*function);
  }

  [[nodiscard]] std::string source_in(const onnx::FunctionDefinition& function) {
    const auto [known, is_new] = functions_.emplace(&function, "");
    if (!is_new) return known->second;
    std::string source;
    for (const onnx::Node* node : function.body->nodes()) {
      source = source_of(*node);
      if (!source.empty()) break;
    }
    functions_[&function] = source;
    return source;
  }

  const onnx::Model& model_;
  std::unordered_map<const onnx::FunctionDefinition*, std::string> functions_;
  RandomValues random_;
};

}  // namespace

RandomValues random_values(const onnx::Model& model) { return RandomValueFinder(model).run(); }

std::string why_not_compared(const RandomValues& reference, const onnx::Value& value, const RandomValues& candidate,
                             const onnx::Value& other) {
  const auto found = reference.find(&value);
  if (found != reference.end()) return fmt::format("it depends on the random numbers of {}", found->second);
  const auto found_there = candidate.find(&other);
  if (found_there == candidate.end()) return "";
  return fmt::format("in the candidate it depends on the random numbers of {}", found_there->second);
}

std::string random_node_of_outputs(const onnx::Model& model) {
  const RandomValues random = random_values(model);
  for (const onnx::Value* output : model.graph().outputs()) {
    if (const auto found = random.find(output); found != random.end()) return found->second;
  }
  return "";
}

}  // namespace graft::verify

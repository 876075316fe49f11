// Walks the nodes in the order of computation.
#include "verify/random_values.hpp"

#include <fmt/format.h>

#include "graph/schema.hpp"

namespace graft {
namespace {

bool draws_numbers(const Node& node) {
  if (has_trait(node, trait::random)) return true;
  if (!node.is("Dropout") || node.input(2) == nullptr) return false;
  const auto is_zero = [&](std::size_t input) {
    const auto constant = node.input(input) == nullptr ? std::nullopt : node.input(input)->constant();
    return constant && constant->scalar() == 0.0;
  };
  return !is_zero(2) && !is_zero(1);  // training mode, and the share that is dropped
}

class RandomValueFinder {
 public:
  explicit RandomValueFinder(const Model& model) : model_(model) {}

  RandomValues run() {
    for (const Node* node : model_.graph().nodes()) {
      const std::string source = source_of(*node);
      if (source.empty()) continue;
      for (const Value* output : node->outputs) {
        if (output != nullptr) random_.emplace(output, source);
      }
    }
    return std::move(random_);
  }

 private:
  /// Inside of bodies each tensor that is read counts: which of the outputs it reaches is not followed.
  [[nodiscard]] std::string source_of(const Node& node) {
    if (draws_numbers(node)) return describe(node);
    if (has_trait(node, trait::reads_shape)) return "";
    for (const Value* input : node.inputs) {
      const auto found = input == nullptr ? random_.end() : random_.find(input);
      if (found != random_.end()) return found->second;
    }
    for (const Graph* body : node.subgraphs()) {
      for (const Node* inner : body->nodes()) {
        if (std::string source = source_of(*inner); !source.empty()) return source;
      }
    }
    const FunctionDefinition* function = model_.find_function(node);
    return function == nullptr ? "" : source_in(*function);
  }

  [[nodiscard]] std::string source_in(const FunctionDefinition& function) {
    const auto [known, is_new] = functions_.emplace(&function, "");
    if (!is_new) return known->second;
    std::string source;
    for (const Node* node : function.body->nodes()) {
      source = source_of(*node);
      if (!source.empty()) break;
    }
    functions_[&function] = source;
    return source;
  }

  const Model& model_;
  std::unordered_map<const FunctionDefinition*, std::string> functions_;
  RandomValues random_;
};

}  // namespace

RandomValues random_values(const Model& model) { return RandomValueFinder(model).run(); }

std::string why_not_compared(const RandomValues& reference, const Value& value, const RandomValues& candidate,
                             const Value& other) {
  const auto found = reference.find(&value);
  if (found != reference.end()) return fmt::format("it depends on random numbers, those of {}", found->second);
  const auto found_there = candidate.find(&other);
  if (found_there == candidate.end()) return "";
  return fmt::format("in the candidate it depends on random numbers, those of {}", found_there->second);
}

std::string random_node_of_outputs(const Model& model) {
  const RandomValues random = random_values(model);
  for (const Value* output : model.graph().outputs()) {
    if (const auto found = random.find(output); found != random.end()) return found->second;
  }
  return "";
}

}  // namespace graft

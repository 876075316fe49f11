#include "quant/search/losing_nodes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "verify/compare/compare.hpp"

namespace graft::quant {
namespace {

/// Returns whether a node selects elements by their order (TopK, ArgMax, ArgMin, NonMaxSuppression). A small error of
/// its input may change its output completely, so its output error says nothing about its own loss.
bool chooses(const onnx::Node& node) {
  return node.is("TopK") || node.is("ArgMax") || node.is("ArgMin") || node.is("NonMaxSuppression");
}

/// Returns whether rounding to the narrow type alone destroys a tensor that the node reads or computes (less than 3 dB
/// remain), because its values are below the smallest positive number of the type, 6e-8 for f16.
bool handles_what_vanishes(const MeasuredTensors& measured, const onnx::Node& node) {
  constexpr double most_is_left_db = 3;
  const auto vanishes = [&](const onnx::Value* value) {
    const verify::TypeEffect* found = value == nullptr ? nullptr : measured.effect(value->name);
    return found != nullptr && found->rounding.overflow == 0 &&
           found->rounding.snr_db.value_or(verify::perfect_db) < most_is_left_db;
  };
  return std::any_of(node.inputs.begin(), node.inputs.end(), vanishes) ||
         std::any_of(node.outputs.begin(), node.outputs.end(), vanishes);
}

/// Adds to `nodes` the nodes that compute the f32 inputs of a node. For a node that works in any type, adds the nodes
/// before it instead.
void add_makers(const onnx::Node& node, std::vector<const onnx::Node*>& nodes) {
  std::vector<const onnx::Node*> readers{&node};
  for (std::size_t i = 0; i < readers.size(); ++i) {
    for (const onnx::Value* input : readers[i]->inputs) {
      const onnx::Node* maker = is_f32(input) ? input->producer : nullptr;
      if (maker == nullptr || maker->is("Constant")) continue;
      const bool is_passed = works_in_any_type(*maker) && is_f32(maker->input(0));
      std::vector<const onnx::Node*>& found = is_passed ? readers : nodes;
      if (std::find(found.begin(), found.end(), maker) == found.end()) found.push_back(maker);
    }
  }
}

/// Returns the node and all nodes from which it is reached in at most `steps` steps.
std::vector<const onnx::Node*> region(const onnx::Node& node, std::size_t steps) {
  std::vector<const onnx::Node*> nodes{&node};
  std::size_t begin = 0;
  for (std::size_t step = 0; step < steps; ++step) {
    const std::size_t end = nodes.size();
    for (std::size_t i = begin; i < end; ++i) add_makers(*nodes[i], nodes);
    begin = end;
  }
  return nodes;
}

}  // namespace

std::vector<NodeLoss> find_losses(TypeTrials& trials, const MeasuredTensors& measured, const KeptNodes& kept) {
  Decibels decibels_of = trials.tensor_decibels(kept);
  for (const auto& [name, tensor] : trials.inputs().front()) {
    const verify::TypeEffect* effect = measured.effect(name);
    if (effect != nullptr) decibels_of[name] = effect->rounding.snr_db.value_or(verify::perfect_db);
  }
  std::vector<NodeLoss> losses;
  for (const onnx::Node* node : trials.graph().nodes()) {
    const auto own = decibels_of.find(key_of(*node));
    if (chooses(*node)) {
      if (!kept.contains(key_of(*node))) losses.push_back({node, worth_looking_at});
      continue;
    }
    if (works_in_any_type(*node) || trials.is_random(*node)) continue;
    // All such nodes are kept, not only the first: after the first one nothing is left to lose, but the others would
    // lose it too.
    if (has_f32_output(*node) && !node->is("Cast") && handles_what_vanishes(measured, *node)) {
      if (!kept.contains(key_of(*node))) losses.push_back({node, verify::perfect_db, true});
      continue;
    }
    if (own == decibels_of.end()) continue;
    double before = verify::perfect_db;
    for (const onnx::Value* input : node->inputs) {
      const auto found = input == nullptr ? decibels_of.end() : decibels_of.find(input->name);
      if (found != decibels_of.end()) before = std::min(before, found->second);
    }
    constexpr double all_of_it = 1e9;
    const bool breaks = std::isinf(own->second) && !std::isinf(before);
    if (std::isinf(own->second) && !breaks) continue;
    losses.push_back({node, breaks ? all_of_it : before - own->second});
  }
  std::stable_sort(losses.begin(), losses.end(),
                   [](const NodeLoss& a, const NodeLoss& b) { return a.lost_db > b.lost_db; });
  return losses;
}

KeptNodes keep_losing(KeptNodes kept, const std::vector<NodeLoss>& losing, std::size_t count, std::size_t steps,
                      report::Precision precision) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto& [node, lost_db, vanishes] = losing[i];
    const std::string lost = vanishes ? fmt::format("computes values that are too small for {}", to_string(precision))
                             : chooses(*node)
                                 ? std::string("selects elements by the order of their values, which rounding changes")
                             : lost_db > verify::perfect_db ? "loses all accuracy"
                                                            : fmt::format("loses {:.0f} dB", lost_db);
    for (const onnx::Node* member : region(*node, steps)) {
      const std::string reason =
          member == node ? fmt::format("it {}", lost)
                         : fmt::format("it computes the input of {}, which {}", onnx::describe(*node), lost);
      kept.try_emplace(key_of(*member), KeptNode{WhyKept::loss, reason});
    }
  }
  return kept;
}

}  // namespace graft::quant

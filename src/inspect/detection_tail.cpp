// Recognizes a tail by its operator and follows the operator's inputs back to the values between the halves of a cut.
#include "inspect/detection_tail.hpp"

#include <algorithm>
#include <unordered_set>

#include "onnx/extract.hpp"
#include "onnx/node_ref.hpp"
#include "onnx/schema.hpp"

namespace graft::inspect {
namespace {

using Values = std::unordered_set<const onnx::Value*>;

/// Returns `value` if it belongs to `main`. If it belongs to a branch or body, returns the values of `main` from which
/// the nodes inside that branch or body compute it.
std::vector<const onnx::Value*> around(const onnx::Value& value, const onnx::Graph& main) {
  if (value.graph == &main) return {&value};
  std::vector<const onnx::Value*> found;
  std::unordered_set<const onnx::Value*> seen;
  std::vector<const onnx::Value*> waiting{&value};
  while (!waiting.empty()) {
    const onnx::Value* next = waiting.back();
    waiting.pop_back();
    if (next == nullptr || !seen.insert(next).second) continue;
    if (next->graph == &main) {
      found.push_back(next);
    } else if (next->producer != nullptr) {
      waiting.insert(waiting.end(), next->producer->inputs.begin(), next->producer->inputs.end());
    }
  }
  return found;
}

std::vector<const onnx::Value*> origins_of(const onnx::Value* value, const Values& between) {
  if (value == nullptr || between.empty()) return {};
  if (between.contains(value)) return {value};
  std::vector<const onnx::Value*> origins;
  std::vector<const onnx::Value*> inner;
  for (const onnx::Value* outer : around(*value, *(*between.begin())->graph)) {
    (between.contains(outer) ? origins : inner).push_back(outer);
  }
  for (const onnx::Value* input :
       onnx::region_before(inner, [&](const onnx::Value& other) { return between.contains(&other); }).inputs) {
    const bool is_known = std::find(origins.begin(), origins.end(), input) != origins.end();
    if (between.contains(input) && !is_known) origins.push_back(input);
  }
  return origins;
}

/// Returns the integer in a constant input of one element, or nothing. It is read as 64 bits, not as double, because
/// the count that stands for "all boxes" is the largest 64-bit integer.
std::optional<std::int64_t> integer_of(const onnx::Node& node, std::size_t input) {
  const onnx::Value* value = node.input(input);
  const std::optional<onnx::TensorData> constant = value == nullptr ? std::nullopt : value->constant();
  const std::optional<std::vector<std::int64_t>> numbers = constant ? constant->ints() : std::nullopt;
  return numbers && numbers->size() == 1 ? std::optional(numbers->front()) : std::nullopt;
}

std::optional<double> number_of(const onnx::Node& node, std::size_t input) {
  const onnx::Value* value = node.input(input);
  const std::optional<onnx::TensorData> constant = value == nullptr ? std::nullopt : value->constant();
  return constant ? constant->scalar() : std::nullopt;
}

std::vector<std::string> names_of(const std::vector<const onnx::Value*>& values) {
  std::vector<std::string> names;
  for (const onnx::Value* value : values) names.push_back(value->name);
  return names;
}

DetectionTail suppression_of(const onnx::Node& node, const Values& between) {
  DetectionTail tail{.kind = DetectionTail::Kind::suppression,
                     .node = ref_of(node),
                     .boxes = names_of(origins_of(node.input(0), between)),
                     .scores = names_of(origins_of(node.input(1), between))};
  if (node.int_or("center_point_box", 0) != 0) tail.form = DetectionTail::Boxes::center_and_size;
  tail.most = integer_of(node, 2);
  // An absent input has ONNX's default: a maximum of 0 keeps no box.
  if (node.input(2) == nullptr) tail.most = 0;
  tail.overlap = node.input(3) == nullptr ? std::optional<double>(0) : number_of(node, 3);
  tail.lowest_score = number_of(node, 4);
  return tail;
}

bool holds_boxes(const onnx::Value* value) {
  if (value == nullptr || !value->shape || value->shape->empty()) return false;
  const Dim& last = value->shape->back();
  return last.is_constant() && last.value() == 4;
}

/// Returns the data inputs of all Gather, GatherElements and GatherND nodes whose indices are computed from `indices`.
std::vector<const onnx::Value*> chosen_by(const onnx::Value& indices) {
  std::vector<const onnx::Value*> chosen;
  std::unordered_set<const onnx::Value*> seen;
  std::vector<const onnx::Value*> waiting{&indices};
  while (!waiting.empty()) {
    const onnx::Value* value = waiting.back();
    waiting.pop_back();
    if (!seen.insert(value).second) continue;
    for (const onnx::Use& use : value->uses) {
      const bool is_index = use.index == 1 && onnx::is_any_of(*use.node, {"Gather", "GatherElements", "GatherND"});
      if (is_index) {
        chosen.push_back(use.node->input(0));
        continue;
      }
      if (!use.node->subgraphs().empty() || use.node->graph != indices.graph) continue;
      // Only integers are followed: a flat index over boxes and classes is divided to get the index of the box.
      for (const onnx::Value* output : use.node->outputs) {
        if (output != nullptr && output->type && onnx::is_integer(*output->type)) waiting.push_back(output);
      }
    }
  }
  return chosen;
}

std::optional<DetectionTail> best_of(const onnx::Node& node, const Values& between) {
  if (node.int_or("largest", 1) == 0 || node.output(1) == nullptr) return std::nullopt;
  DetectionTail tail{.kind = DetectionTail::Kind::best,
                     .node = ref_of(node),
                     .boxes = {},
                     .scores = names_of(origins_of(node.input(0), between))};
  bool chooses_boxes = false;
  for (const onnx::Value* chosen : chosen_by(*node.output(1))) {
    if (!holds_boxes(chosen)) continue;
    chooses_boxes = true;
    for (const std::string& origin : names_of(origins_of(chosen, between))) {
      if (std::find(tail.boxes.begin(), tail.boxes.end(), origin) == tail.boxes.end()) tail.boxes.push_back(origin);
    }
  }
  if (!chooses_boxes) return std::nullopt;
  tail.most = integer_of(node, 1);
  return tail;
}

}  // namespace

std::vector<DetectionTail> find_tails(const std::vector<const onnx::Node*>& nodes,
                                      const std::vector<const onnx::Value*>& between) {
  const Values known(between.begin(), between.end());
  std::vector<DetectionTail> tails;
  const auto look_at = [&](const onnx::Node& node) {
    if (node.is("NonMaxSuppression")) tails.push_back(suppression_of(node, known));
    if (!node.is("TopK")) return;
    if (std::optional<DetectionTail> tail = best_of(node, known)) tails.push_back(std::move(*tail));
  };
  for (const onnx::Node* node : nodes) {
    look_at(*node);
    for (const onnx::Graph* inner : node->subgraphs()) inner->for_each_node(look_at);
  }
  return tails;
}

}  // namespace graft::inspect

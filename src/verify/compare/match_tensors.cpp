// Matches tensors by name, then by the origins that rewrites recorded, then equal operators on equal tensors.
#include "verify/compare/match_tensors.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "onnx/origin_note.hpp"
#include "onnx/schema.hpp"
#include "verify/compare/pieces.hpp"

namespace graft::verify {
namespace {

bool holds_numbers(const onnx::Value& value) {
  if (!value.type) return value.opaque.empty() && !value.container;
  return is_real(*value.type);
}

bool is_computed(const onnx::Value& value) {
  return value.producer != nullptr && !value.constant() && holds_numbers(value);
}

/// Returns false if one tensor is known to contain integers and the other real numbers; otherwise true. A quantized
/// integer is never equal to the real number that it represents.
bool same_kind(const onnx::Value& a, const onnx::Value& b) {
  if (!a.type || !b.type) return true;
  return is_whole(*a.type) == is_whole(*b.type);
}

/// Returns false if the numbers of elements of both tensors are known and differ, otherwise true.
bool can_have_as_many(const onnx::Value& a, const onnx::Value& b) {
  const auto count = [](const onnx::Value& value) -> std::optional<std::int64_t> {
    if (!value.shape) return std::nullopt;
    std::int64_t product = 1;
    for (const Dim& dim : *value.shape) {
      if (!dim.is_constant()) return std::nullopt;
      product *= dim.value();
    }
    return product;
  };
  const auto left = count(a);
  const auto right = count(b);
  return !left || !right || *left == *right;
}

/// Returns a hash of the constants that a node reads, or 0 if they have too few elements to distinguish nodes.
std::size_t weights_of(const onnx::Node& node) {
  constexpr std::int64_t few = 8;
  std::size_t hash = 0;
  bool tells = false;
  for (const onnx::Value* input : node.inputs) {
    const auto constant = input == nullptr ? std::nullopt : input->constant();
    if (!constant) continue;
    tells = tells || constant->element_count() >= few;
    constexpr std::size_t factor = 31;
    hash = hash * factor + std::hash<std::string_view>()(constant->bytes.view());
  }
  return tells ? hash : 0;
}

}  // namespace

std::vector<const onnx::Value*> tensors_of(const onnx::Model& model) {
  std::vector<const onnx::Value*> tensors;
  for (const onnx::Node* node : model.graph().nodes()) {
    for (const onnx::Value* output : node->outputs) {
      if (output != nullptr && is_computed(*output)) tensors.push_back(output);
    }
  }
  return tensors;
}

TensorMatcher::TensorMatcher(const onnx::Model& reference, const onnx::Model& candidate)
    : reference_(reference), candidate_(candidate) {}

bool TensorMatcher::can_match(const onnx::Value& reference, const onnx::Value& candidate) const {
  return !by_reference_.contains(&reference) && !by_candidate_.contains(&candidate) &&
         same_kind(reference, candidate) && can_have_as_many(reference, candidate);
}

void TensorMatcher::add(const onnx::Value& reference, const onnx::Value& candidate, MatchedBy how) {
  if (by_reference_.contains(&reference) || by_candidate_.contains(&candidate)) {
    throw Error(Error::Kind::internal, "'" + reference.name + "' or '" + candidate.name + "' is matched already");
  }
  by_reference_.emplace(&reference, &candidate);
  by_candidate_.emplace(&candidate, TensorMatch{&reference, &candidate, how});
}

void TensorMatcher::match(bool trust_names) {
  if (trust_names) match_names();
  match_origins();
  match_structure();
  match_inputs_of_equal_nodes();
  match_in_sequence();
  match_structure();
  match_inputs_of_equal_nodes();
}

void TensorMatcher::match_names() {
  for (const onnx::Value* tensor : tensors_of(candidate_)) {
    const onnx::Value* other = reference_.graph().find_local(tensor->name);
    if (other != nullptr && is_computed(*other) && can_match(*other, *tensor)) add(*other, *tensor, MatchedBy::name);
  }
}

void TensorMatcher::match_origins() {
  for (const onnx::Value* tensor : tensors_of(candidate_)) {
    for (const std::string& name : origin_of(*tensor->producer)) {
      const onnx::Value* other = reference_.graph().find_local(name);
      if (other == nullptr || !is_computed(*other) || !can_match(*other, *tensor)) continue;
      // The node was one step in the computation of that tensor, which stays unmatched.
      if (other->producer->op_type != tensor->producer->op_type) continue;
      add(*other, *tensor, MatchedBy::origin);
      break;
    }
  }
}

void TensorMatcher::match_structure() {
  // The operator and the tensors that it reads. Constants count only by their position, because their values may be
  // wrong.
  using Key = std::pair<std::string, std::vector<const onnx::Value*>>;
  const auto key_of = [](const onnx::Node& node, const auto& partner) -> std::optional<Key> {
    Key key{node.domain + "::" + node.op_type, {}};
    bool any = false;
    for (const onnx::Value* input : node.inputs) {
      if (input == nullptr || input->constant()) {
        key.second.push_back(nullptr);
        continue;
      }
      const onnx::Value* known = partner(*input);
      if (known == nullptr) return std::nullopt;
      key.second.push_back(known);
      any = true;
    }
    return any ? std::optional(std::move(key)) : std::nullopt;
  };
  std::map<Key, std::vector<const onnx::Node*>> nodes;
  const auto is_open = [&](const onnx::Node& node) {
    return node.output() != nullptr && is_computed(*node.output()) && !by_reference_.contains(node.output());
  };
  for (const onnx::Node* node : reference_.graph().nodes()) {
    if (!is_open(*node)) continue;
    const auto key = key_of(*node, [](const onnx::Value& value) { return &value; });
    if (key) nodes[*key].push_back(node);
  }
  for (const onnx::Node* node : candidate_.graph().nodes()) {
    if (node->output() == nullptr || by_candidate_.contains(node->output()) || !is_computed(*node->output())) continue;
    const auto key = key_of(*node, [&](const onnx::Value& value) { return reference_of(value); });
    const auto found = key ? nodes.find(*key) : nodes.end();
    if (found == nodes.end()) continue;
    for (const onnx::Node* other : found->second) {
      if (!is_open(*other) || other->outputs.size() != node->outputs.size()) continue;
      if (!can_match(*other->output(), *node->output())) continue;
      for (std::size_t i = 0; i < node->outputs.size(); ++i) {
        const onnx::Value* left = other->outputs[i];
        const onnx::Value* right = node->outputs[i];
        if (left != nullptr && right != nullptr && is_computed(*left) && is_computed(*right) &&
            can_match(*left, *right)) {
          add(*left, *right, MatchedBy::structure);
        }
      }
      break;
    }
  }
}

void TensorMatcher::match_inputs_of_equal_nodes() {
  const std::vector<onnx::Node*> backwards = candidate_.graph().nodes();
  for (auto node = backwards.rbegin(); node != backwards.rend(); ++node) {
    const onnx::Value* output = (*node)->output();
    const onnx::Value* partner = output == nullptr ? nullptr : reference_of(*output);
    if (partner == nullptr || partner->producer == nullptr || has_trait(**node, onnx::trait::commutative)) continue;
    const onnx::Node& other = *partner->producer;
    if (other.op_type != (*node)->op_type || other.domain != (*node)->domain ||
        other.inputs.size() != (*node)->inputs.size())
      continue;
    const bool same_weights = weights_of(other) != 0 && weights_of(other) == weights_of(**node);
    for (std::size_t i = 0; i < other.inputs.size(); ++i) {
      const onnx::Value* left = other.inputs[i];
      const onnx::Value* right = (*node)->inputs[i];
      if (left == nullptr || right == nullptr || !is_computed(*left) || !is_computed(*right)) continue;
      if (left->graph != reference_.main.get() || right->graph != candidate_.main.get()) continue;
      const bool alike = same_weights || left->producer->op_type == right->producer->op_type;
      if (alike && can_match(*left, *right)) add(*left, *right, MatchedBy::structure);
    }
  }
}

void TensorMatcher::match_in_sequence() {
  const auto nodes_of = [](const onnx::Model& model) {
    std::vector<const onnx::Node*> nodes;
    for (const onnx::Node* node : model.graph().nodes()) {
      if (node->output() != nullptr && is_computed(*node->output())) nodes.push_back(node);
    }
    return nodes;
  };
  const std::vector<const onnx::Node*> left = nodes_of(reference_);
  const std::vector<const onnx::Node*> right = nodes_of(candidate_);
  constexpr std::size_t most = std::size_t{1} << 26;
  if (left.size() * right.size() > most) return;
  std::unordered_map<std::string, int> ids;
  const auto id_of = [&](const onnx::Node& node, const onnx::Value* matched) {
    const std::string key =
        matched != nullptr ? "=" + matched->name : node.domain + "::" + node.op_type + std::to_string(weights_of(node));
    return ids.emplace(key, static_cast<int>(ids.size())).first->second;
  };
  std::vector<int> a;
  std::vector<int> b;
  for (const onnx::Node* node : left)
    a.push_back(id_of(*node, candidate_of(*node->output()) == nullptr ? nullptr : node->output()));
  for (const onnx::Node* node : right) b.push_back(id_of(*node, reference_of(*node->output())));

  // Longest common subsequence: lengths[i][k] is its length for the nodes from i and k on.
  const std::size_t width = b.size() + 1;
  std::vector<std::uint16_t> lengths((a.size() + 1) * width);
  for (std::size_t i = a.size(); i-- > 0;) {
    for (std::size_t k = b.size(); k-- > 0;) {
      lengths[i * width + k] = a[i] == b[k] ? static_cast<std::uint16_t>(lengths[(i + 1) * width + k + 1] + 1)
                                            : std::max(lengths[(i + 1) * width + k], lengths[i * width + k + 1]);
    }
  }
  for (std::size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    if (a[i] == b[k]) {
      const onnx::Value& from = *left[i++]->output();
      const onnx::Value& to = *right[k++]->output();
      if (can_match(from, to)) add(from, to, MatchedBy::structure);
    } else if (lengths[(i + 1) * width + k] >= lengths[i * width + k + 1]) {
      ++i;
    } else {
      ++k;
    }
  }
}

const onnx::Value* TensorMatcher::reference_of(const onnx::Value& candidate) const {
  const auto found = by_candidate_.find(&candidate);
  return found == by_candidate_.end() ? nullptr : found->second.reference;
}

const onnx::Value* TensorMatcher::candidate_of(const onnx::Value& reference) const {
  const auto found = by_reference_.find(&reference);
  return found == by_reference_.end() ? nullptr : found->second;
}

std::vector<TensorMatch> TensorMatcher::matches() const {
  std::vector<TensorMatch> result;
  for (const onnx::Value* input : candidate_.graph().inputs()) {
    if (const auto found = by_candidate_.find(input); found != by_candidate_.end()) result.push_back(found->second);
  }
  for (const onnx::Value* tensor : tensors_of(candidate_)) {
    if (const auto found = by_candidate_.find(tensor); found != by_candidate_.end()) result.push_back(found->second);
  }
  return result;
}

std::vector<const onnx::Value*> TensorMatcher::unmatched_of_reference() const {
  std::vector<const onnx::Value*> result;
  for (const onnx::Value* tensor : tensors_of(reference_)) {
    if (!by_reference_.contains(tensor)) result.push_back(tensor);
  }
  return result;
}

std::vector<const onnx::Value*> TensorMatcher::unmatched_of_candidate() const {
  std::vector<const onnx::Value*> result;
  for (const onnx::Value* tensor : tensors_of(candidate_)) {
    if (!by_candidate_.contains(tensor)) result.push_back(tensor);
  }
  return result;
}

}  // namespace graft::verify

// Finds the tensors of two models that correspond to each other.
#pragma once

#include <unordered_map>
#include <vector>

#include "graft/report/layers.hpp"
#include "onnx/model.hpp"

namespace graft::verify {

using report::MatchedBy;

struct TensorMatch {
  const onnx::Value* reference = nullptr;
  const onnx::Value* candidate = nullptr;
  MatchedBy how = MatchedBy::name;
};

/// Returns the tensors with numeric elements that nodes of the main graph compute.
[[nodiscard]] std::vector<const onnx::Value*> tensors_of(const onnx::Model& model);

/// Finds pairs of tensors in two models that compute the same. Each tensor is in at most one pair.
class TensorMatcher {
 public:
  TensorMatcher(const onnx::Model& reference, const onnx::Model& candidate);

  /// Adds a pair. Throws Error (internal) if one of the tensors already has a partner.
  void add(const onnx::Value& reference, const onnx::Value& candidate, MatchedBy how);
  /// Pairs tensors by name, by the original names that rewrites recorded in the metadata, and by the structure of the
  /// graphs, starting from the existing pairs. Set `trust_names` to false if names are numbers and the network was
  /// changed, because an equal name then may denote a different tensor.
  void match(bool trust_names = true);

  [[nodiscard]] const onnx::Value* reference_of(const onnx::Value& candidate) const;
  [[nodiscard]] const onnx::Value* candidate_of(const onnx::Value& reference) const;
  /// Returns the pairs in the topological order of the candidate, inputs first.
  [[nodiscard]] std::vector<TensorMatch> matches() const;
  [[nodiscard]] std::vector<const onnx::Value*> unmatched_of_reference() const;
  [[nodiscard]] std::vector<const onnx::Value*> unmatched_of_candidate() const;

 private:
  [[nodiscard]] bool can_match(const onnx::Value& reference, const onnx::Value& candidate) const;
  void match_names();
  void match_origins();
  void match_structure();              ///< Pairs the results of equal operators on corresponding tensors.
  void match_inputs_of_equal_nodes();  ///< Pairs the inputs of equal operators whose results correspond.
  /// Pairs nodes with the same operator and weights, in the longest common subsequence of the nodes of both models.
  void match_in_sequence();

  const onnx::Model& reference_;
  const onnx::Model& candidate_;
  std::unordered_map<const onnx::Value*, TensorMatch> by_candidate_;
  std::unordered_map<const onnx::Value*, const onnx::Value*> by_reference_;
};

}  // namespace graft::verify

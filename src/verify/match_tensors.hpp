// Which tensor of one model is which of another.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "onnx/model.hpp"

namespace graft::verify {

/// Why two tensors are taken to be the same.
enum class MatchedBy : std::uint8_t {
  input,      ///< Both models are given it.
  output,     ///< Both models return it, under other names.
  name,       ///< They are called the same.
  origin,     ///< The rewrite that made one wrote down what it stands for.
  structure,  ///< The same operator on tensors that are the same.
  values,     ///< The same numbers, perhaps in another order.
};
[[nodiscard]] std::string_view to_string(MatchedBy how);

struct TensorMatch {
  const onnx::Value* reference = nullptr;
  const onnx::Value* candidate = nullptr;
  MatchedBy how = MatchedBy::name;
};

/// Tensors of both main graphs that hold numbers and are computed.
[[nodiscard]] std::vector<const onnx::Value*> tensors_of(const onnx::Model& model);

/// Pairs tensors: each is in one pair at most.
class TensorMatcher {
 public:
  TensorMatcher(const onnx::Model& reference, const onnx::Model& candidate);

  /// Throws Error (internal) if one of both has a partner already.
  void add(const onnx::Value& reference, const onnx::Value& candidate, MatchedBy how);
  /// By name, by what rewrites wrote down, and by structure from the pairs that there are. Names that are numbers mean
  /// another tensor after any change of the network: then they had better not be trusted.
  void match(bool trust_names = true);

  [[nodiscard]] const onnx::Value* reference_of(const onnx::Value& candidate) const;
  [[nodiscard]] const onnx::Value* candidate_of(const onnx::Value& reference) const;
  /// In the topological order of the candidate; inputs first.
  [[nodiscard]] std::vector<TensorMatch> matches() const;
  [[nodiscard]] std::vector<const onnx::Value*> unmatched_of_reference() const;
  [[nodiscard]] std::vector<const onnx::Value*> unmatched_of_candidate() const;

 private:
  [[nodiscard]] bool can_match(const onnx::Value& reference, const onnx::Value& candidate) const;
  void match_names();
  void match_origins();
  void match_structure();              ///< The same operator on the same tensors gives the same.
  void match_inputs_of_equal_nodes();  ///< And where it gives the same, it reads the same.
  void match_in_sequence();            ///< Nodes of one operator with the same weights, in the same order.

  const onnx::Model& reference_;
  const onnx::Model& candidate_;
  std::unordered_map<const onnx::Value*, TensorMatch> by_candidate_;
  std::unordered_map<const onnx::Value*, const onnx::Value*> by_reference_;
};

}  // namespace graft::verify

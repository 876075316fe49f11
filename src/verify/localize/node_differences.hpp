// Compares a node of one model with a node of another: operator, attributes, weights, inputs and types.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "onnx/model.hpp"

namespace graft::verify {

/// Two models and the correspondence of their values. `partner` returns the value of the reference that corresponds to
/// a value of the candidate, or null if none is known.
struct ModelPair {
  const onnx::Model& reference;
  const onnx::Model& candidate;
  std::function<const onnx::Value*(const onnx::Value& of_candidate)> partner;
};

/// Returns descriptions of the differences between two lists of nodes of the same length: single nodes, or the same
/// operators in the same order. Returns nothing for other lists. Examples: "attribute pads: [1, 1, 1, 1] in the
/// reference, [2, 2, 0, 0] in the candidate", "constant 'w' (input 1): 3 of 432 elements differ ...", "inputs 0 and 1
/// are exchanged ...". Differences in bodies and local functions begin with the name of the node. An empty list means
/// that the nodes are equal, so the difference of their results comes from the way they are computed. If the weights of
/// one model have a narrower type, the rounding to it does not count as a difference.
[[nodiscard]] std::optional<std::vector<std::string>> part_differences(const ModelPair& models,
                                                                       const std::vector<const onnx::Node*>& reference,
                                                                       const std::vector<const onnx::Node*>& candidate);

}  // namespace graft::verify

// Compares a node of one model with a node of another: operator, attributes, weights, inputs and types.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "onnx/model.hpp"

namespace graft::verify {

/// Two models and the correspondence of their values: `partner` returns the reference's value for one of the candidate,
/// or null if it is not known.
struct ModelPair {
  const onnx::Model& reference;
  const onnx::Model& candidate;
  std::function<const onnx::Value*(const onnx::Value& of_candidate)> partner;
};

/// Returns the differences between the nodes of two parts with the same number of nodes: single nodes, or the same
/// operators in the same order. Returns nothing for other parts. Examples: "attribute pads: [1, 1, 1, 1] in the
/// reference, [2, 2, 0, 0] in the candidate", "constant 'w' (input 1): 3 of 432 elements differ ...", "inputs 0 and 1
/// are exchanged ..."; differences in bodies and local functions are preceded by their place. An empty list means that
/// the nodes are equal, so that the difference comes from how they are computed. If the weights of one model have a
/// narrower type, its rounding does not count as a difference.
[[nodiscard]] std::optional<std::vector<std::string>> part_differences(const ModelPair& models,
                                                                       const std::vector<const onnx::Node*>& reference,
                                                                       const std::vector<const onnx::Node*>& candidate);

}  // namespace graft::verify

// What of a node is another in another model: operator, attributes, weights, inputs, types.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "onnx/model.hpp"

namespace graft::verify {

/// Two models, and which value of the reference one of the candidate is; nullptr where that is not known.
struct ModelPair {
  const onnx::Model& reference;
  const onnx::Model& candidate;
  std::function<const onnx::Value*(const onnx::Value& of_candidate)> partner;
};

/// Of the nodes of two parts that have as many: one, or the same operators in the same order. Nothing for others.
/// "attribute pads: [1, 1, 1, 1] in the reference, [2, 2, 0, 0] in the candidate", "constant 'w' (input 1): 3 of 432
/// elements differ ...", "inputs 0 and 1 are exchanged ...", and the same of the nodes in bodies and in local
/// functions, with where they are. Empty where both say the same: then the difference is in what they compute with.
/// Where the weights are narrower in one, what the narrower type rounds is no difference.
[[nodiscard]] std::optional<std::vector<std::string>> part_differences(const ModelPair& models,
                                                                       const std::vector<const onnx::Node*>& reference,
                                                                       const std::vector<const onnx::Node*>& candidate);

}  // namespace graft::verify

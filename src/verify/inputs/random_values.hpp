// Finds the tensors that depend on random numbers, which cannot be compared.
#pragma once

#include <string>
#include <unordered_map>

#include "onnx/model.hpp"

namespace graft::verify {

/// Maps each value of a main graph that depends on random numbers to a description of the node that generates them,
/// such as "node 'noise' (RandomNormal)".
using RandomValues = std::unordered_map<const onnx::Value*, std::string>;

/// Returns the values that depend on random numbers. A seed attribute makes no difference, because engines generate
/// different numbers in each run. Dropout counts if it is in training mode; a node that calls a function or has
/// subgraphs counts if a random node is inside. A value that depends only on the shape of a random tensor does not
/// count.
[[nodiscard]] RandomValues random_values(const onnx::Model& model);

/// Returns why a pair of values is not compared if one of them is random, such as "it depends on the random numbers of
/// node 'noise' (RandomNormal)"; otherwise an empty string.
[[nodiscard]] std::string why_not_compared(const RandomValues& reference, const onnx::Value& value,
                                           const RandomValues& candidate, const onnx::Value& other);

/// Returns a description of the first random node on which outputs of the model depend, or an empty string.
[[nodiscard]] std::string random_node_of_outputs(const onnx::Model& model);

}  // namespace graft::verify

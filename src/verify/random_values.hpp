// Which tensors depend on random numbers: of those no comparison says anything.
#pragma once

#include <string>
#include <unordered_map>

#include "onnx/model.hpp"

namespace graft::verify {

/// Values of a main graph, with the node that their numbers come from: "node 'noise' (RandomNormal)".
using RandomValues = std::unordered_map<const onnx::Value*, std::string>;

/// Whatever the seed: an engine draws other numbers from it in each run. Dropout counts where it is in training mode,
/// and a node that calls a function or has bodies where there is such a node inside. What depends on the shape of such
/// a tensor alone does not count.
[[nodiscard]] RandomValues random_values(const onnx::Model& model);

/// "it depends on random numbers, those of node 'noise' (RandomNormal)", of a pair of values; empty where neither does.
[[nodiscard]] std::string why_not_compared(const RandomValues& reference, const onnx::Value& value,
                                           const RandomValues& candidate, const onnx::Value& other);

/// The first random node that outputs of the model depend on; empty where there is none.
[[nodiscard]] std::string random_node_of_outputs(const onnx::Model& model);

}  // namespace graft::verify

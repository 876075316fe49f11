// Finds the nodes that lose accuracy in a narrow type, by comparing each tensor of the typed model with f32.
#pragma once

#include <cstddef>
#include <vector>

#include "quant/search/measure_tensors.hpp"
#include "quant/search/type_trials.hpp"

namespace graft::quant {

/// The minimum loss in dB for a node to be tried first.
inline constexpr double worth_looking_at = 3;

/// The signal-to-noise ratio in dB that a node loses.
struct NodeLoss {
  const onnx::Node* node;
  double lost_db;
  bool vanishes = false;  ///< Whether the node reads or computes values that are too small for the type.
};

/// Returns the nodes that lose, the worst first.
[[nodiscard]] std::vector<NodeLoss> find_losses(TypeTrials& trials, const MeasuredTensors& measured,
                                                const KeptNodes& kept);

/// Returns the kept nodes and the first `count` of the losing nodes, each with the nodes that compute its inputs,
/// `steps` steps back.
[[nodiscard]] KeptNodes keep_losing(KeptNodes kept, const std::vector<NodeLoss>& losing, std::size_t count,
                                    std::size_t steps, report::Precision precision);

}  // namespace graft::quant

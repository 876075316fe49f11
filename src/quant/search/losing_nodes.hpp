// Finds the nodes that lose accuracy in a narrow type, by comparing each tensor of the typed model with f32.
#pragma once

#include <cstddef>
#include <vector>

#include "quant/search/measure_tensors.hpp"
#include "quant/search/type_trials.hpp"

namespace graft::quant {

/// The loss in dB from which a node is among the first that are tried in f32.
inline constexpr double worth_looking_at = 3;

/// A node and its loss of accuracy in the narrow type (f16 or bf16), in dB: the lowest signal-to-noise ratio of its
/// inputs minus that of its output.
struct NodeLoss {
  const onnx::Node* node;
  double lost_db;
  bool vanishes = false;  ///< Whether the node reads or computes values that are too small for the type.
};

/// Returns nodes with their losses, sorted with the largest loss first. Runs the model with the nodes `kept` in f32 and
/// the others in the narrow type (f16 or bf16).
[[nodiscard]] std::vector<NodeLoss> find_losses(TypeTrials& trials, const MeasuredTensors& measured,
                                                const KeptNodes& kept);

/// Returns `kept` with the first `count` nodes of `losing` added, each with the nodes up to `steps` steps before it.
[[nodiscard]] KeptNodes keep_losing(KeptNodes kept, const std::vector<NodeLoss>& losing, std::size_t count,
                                    std::size_t steps, report::Precision precision);

}  // namespace graft::quant

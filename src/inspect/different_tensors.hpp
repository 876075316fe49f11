// Compares the tensors of a network that TensorRT built with the tensors that ONNX defines.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "inspect/verdicts.hpp"
#include "onnx/model.hpp"

namespace graft::inspect {

/// A tensor of the main graph that has another shape or another element type in TensorRT's network.
struct DifferentTensor {
  std::string name;
  std::string reason;  ///< A clause such as "its output 'y' is 1x4x5x5 where ONNX defines 1x4x6x6".
};

/// Returns the tensors that differ, at most one for each node, and none that a different tensor leads to. `built` is
/// what the engine driver reports as "tensors": element types of the outputs, and sizes of all tensors for some sizes
/// of the inputs. The definition is inferred from inputs and nodes; shapes that the file declares for other tensors do
/// not count. A tensor whose name a branch or body uses as well is passed over, because the report does not say which
/// of the two it means. Sizes that either side does not know, and f64 outputs that TensorRT computes in f32, do not
/// differ.
[[nodiscard]] std::vector<DifferentTensor> find_different_tensors(const onnx::Model& model,
                                                                  const nlohmann::json& built);

/// Marks the verdict on the node that computes a different tensor as computed wrongly, unless a rule has found this.
/// `is_lowered`: `graft convert` replaces the node, so that the node keeps its advice.
void note_different_tensor(const std::string& reason, bool is_lowered, NodeSupport& verdict);

}  // namespace graft::inspect

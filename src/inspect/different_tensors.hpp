// Compares the tensors of a network that TensorRT built with the tensors that ONNX defines.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "inspect/verdicts.hpp"
#include "onnx/model.hpp"

namespace graft::inspect {

/// A tensor of the main graph whose shape or element type in TensorRT's network differs from the one that ONNX defines.
struct DifferentTensor {
  std::string name;
  std::string reason;  ///< A clause such as "its output 'y' is 1x4x5x5 where ONNX defines 1x4x6x6".
};

/// Returns the tensors whose shape or type in TensorRT differs from ONNX's, at most one for each node; tensors that
/// depend on such a tensor are not returned. `built` is the member "tensors" of the engine driver's result: the element
/// types of the outputs, and the sizes of all tensors for some sizes of the inputs. ONNX's shapes are inferred from
/// inputs and nodes; shapes that the file declares for inner tensors are ignored. Tensors whose names also occur in a
/// branch or body are not compared, because the driver's result does not distinguish them. Unknown sizes, and f64
/// outputs that TensorRT computes in f32, do not count as different.
[[nodiscard]] std::vector<DifferentTensor> find_different_tensors(const onnx::Model& model,
                                                                  const nlohmann::json& built);

/// Changes `verdict`, the verdict on the node that computes a DifferentTensor, to "computed wrongly". `reason` is
/// DifferentTensor::reason. Does nothing if a rule has set this verdict already. If `is_lowered`, which means that
/// `graft convert` replaces the node, the verdict becomes `lowered` instead and keeps its advice.
void note_different_tensor(const std::string& reason, bool is_lowered, NodeSupport& verdict);

}  // namespace graft::inspect

// Finds the last step of a detector: non-maximum suppression, or the selection of the boxes with the best scores.
#pragma once

#include <vector>

#include "graft/report/cut.hpp"
#include "onnx/model.hpp"

namespace graft::inspect {

using report::DetectionTail;

/// Returns the detection tails among `nodes`, which lie in the main graph, and in their sub-graphs. Boxes and scores
/// are traced back to `between`, which are values of the main graph.
[[nodiscard]] std::vector<DetectionTail> find_tails(const std::vector<const onnx::Node*>& nodes,
                                                    const std::vector<const onnx::Value*>& between);

}  // namespace graft::inspect

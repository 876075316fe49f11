// Finds the last step of a detector: non-maximum suppression, or the selection of the boxes with the best scores.
#pragma once

#include <vector>

#include "graft/report/cut.hpp"
#include "onnx/model.hpp"

namespace graft::inspect {

using report::DetectionTail;

/// Returns the last steps of a detector (non-maximum suppression or TopK of scores, see report::DetectionTail) that are
/// among `nodes` or in their sub-graphs. `nodes` are in the main graph. The boxes and scores that a step reads are
/// traced back to values in `between`, which are also in the main graph.
[[nodiscard]] std::vector<DetectionTail> find_tails(const std::vector<const onnx::Node*>& nodes,
                                                    const std::vector<const onnx::Value*>& between);

}  // namespace graft::inspect

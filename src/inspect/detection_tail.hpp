// Finds the last step of a detector: non-maximum suppression, or the selection of the boxes with the best scores.
#pragma once

#include <vector>

#include "graft/report/cut.hpp"
#include "onnx/model.hpp"

namespace graft::inspect {

using report::DetectionTail;

/// Returns the parts of a detector that select boxes (detection tails) among `nodes`, which are in the main graph, and
/// in their sub-graphs. The boxes and scores that they read are traced back to values in `between`, which are in the
/// main graph.
[[nodiscard]] std::vector<DetectionTail> find_tails(const std::vector<const onnx::Node*>& nodes,
                                                    const std::vector<const onnx::Value*>& between);

}  // namespace graft::inspect

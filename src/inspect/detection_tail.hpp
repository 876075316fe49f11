// Finds the last step of a detector: non-maximum suppression, or the selection of the boxes with the best scores.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "onnx/model.hpp"
#include "onnx/node_ref.hpp"

namespace graft::inspect {

struct DetectionTail {
  enum class Kind : std::uint8_t {
    suppression,  ///< NonMaxSuppression (YOLO, SSD, Faster R-CNN).
    best,         ///< TopK of the scores, and Gather of the boxes (DETR).
  };
  /// How four numbers describe a box.
  enum class Corners : std::uint8_t { opposite, center_and_size };

  Kind kind = Kind::suppression;
  NodeRef node;                            ///< NonMaxSuppression or TopK.
  std::vector<const onnx::Value*> boxes;   ///< The values of `between` from which the boxes are computed.
  std::vector<const onnx::Value*> scores;  ///< The values of `between` from which the scores are computed.
  Corners corners = Corners::opposite;
  /// Maximum number of boxes, for suppressions per class; nothing if it is not constant.
  std::optional<std::int64_t> most = {};
  /// Intersection over union above which a box is suppressed; only for suppressions.
  std::optional<double> overlap = {};
  std::optional<double> lowest_score = {};
};

/// Returns the detection tails among `nodes`, which lie in the main graph, and in their sub-graphs. Boxes and scores
/// are traced back to `between`, which are values of the main graph.
[[nodiscard]] std::vector<DetectionTail> find_tails(const std::vector<const onnx::Node*>& nodes,
                                                    const std::vector<const onnx::Value*>& between);

}  // namespace graft::inspect

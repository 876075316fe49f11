// What a detector does with its last tensors: non-maximum suppression, or the best by score.
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
    best,         ///< TopK of the scores, and the boxes of those (DETR).
  };
  /// How four numbers are a box.
  enum class Corners : std::uint8_t { opposite, center_and_size };

  Kind kind = Kind::suppression;
  NodeRef node;                            ///< NonMaxSuppression or TopK.
  std::vector<const onnx::Value*> boxes;   ///< Of the values that were asked about: what the boxes are made from.
  std::vector<const onnx::Value*> scores;  ///< The same of the scores.
  Corners corners = Corners::opposite;
  std::optional<std::int64_t> most = {};  ///< Boxes, of each class for a suppression; nothing where it is not constant.
  std::optional<double> overlap = {};     ///< Intersection over union above which a box goes; suppressions only.
  std::optional<double> lowest_score = {};
};

/// The tails among these nodes of the main graph and in their sub-graphs, traced back to `between`, values of the main
/// graph.
[[nodiscard]] std::vector<DetectionTail> find_tails(const std::vector<const onnx::Node*>& nodes,
                                                    const std::vector<const onnx::Value*>& between);

}  // namespace graft::inspect

// The sizes of a problem of CombinedNonMaxSuppression, and the workspace of its CUDA kernels.
#pragma once

#include <cstdint>

#include "core/workspace_parts.hpp"
#include "ops/combined_non_max_suppression/combined_non_max_suppression.hpp"

namespace graft::ops {

struct DetectionSizes {
  explicit DetectionSizes(const Problem& problem);

  std::int64_t items = 0;
  std::int64_t boxes = 0;
  std::int64_t classes = 0;
  std::int64_t most = 0;  ///< The number of places for detections of an item.
  bool has_boxes_of_classes = false;
  bool has_anchors = false;
  bool has_anchors_of_items = false;

  /// Returns the number of scores of an item.
  [[nodiscard]] std::int64_t scores() const { return boxes * classes; }
};

/// Returns the lowest score input that is a candidate: the threshold, or its logit if the inputs are logits. NaN if no
/// score is a candidate.
[[nodiscard]] float lowest_candidate(const CombinedNonMaxSuppression& op);

/// Byte offsets in the workspace of the CUDA kernels.
struct DetectionPlan : WorkspaceParts {
  /// The temporary storage in bytes that CUB needs with double buffers for keys and values, with a margin.
  static constexpr std::int64_t sort_bytes = 4096;
  /// The number of scores that a block searches for candidates.
  static constexpr std::int64_t tile = 2048;
  /// The number of histogram bins for scores. The sign, the exponent and the first bits of the mantissa determine the
  /// bin of a score.
  static constexpr std::int64_t bins = 4096;

  explicit DetectionPlan(const DetectionSizes& sizes) : tiles((sizes.scores() + tile - 1) / tile) {
    const std::int64_t candidates = sizes.items * sizes.scores();
    for (std::int64_t& each : keys) each = add(candidates * 4);
    for (std::int64_t& each : values) each = add(candidates * 4);
    found = add(sizes.items * tiles * 4);
    histograms = add(sizes.items * bins * 4);
    lowest_bins = add(sizes.items * 4);
    begins = add(sizes.items * 4);
    ends = add(sizes.items * 4);
    counters = add(2 * sizes.items * sizes.classes * 4);
    kept_boxes = add(sizes.items * sizes.most * 16);
    kept_classes = add(sizes.items * sizes.most * 4);
    sort = add(sort_bytes);
  }

  std::int64_t tiles = 0;  ///< The number of tiles of an item.
  std::int64_t keys[2] = {};
  std::int64_t values[2] = {};
  std::int64_t found = 0;        ///< For each tile the number of its candidates, then that of the tiles before it.
  std::int64_t histograms = 0;   ///< The number of candidates in each bin of each item.
  std::int64_t lowest_bins = 0;  ///< The lowest bin of each item whose candidates may be visited.
  std::int64_t begins = 0;
  std::int64_t ends = 0;
  std::int64_t counters = 0;  ///< For each class of each item: the candidates visited, then the detections.
  std::int64_t kept_boxes = 0;
  std::int64_t kept_classes = 0;
  std::int64_t sort = 0;
};

}  // namespace graft::ops

// The sizes of a problem of NonMaxSuppression, and where its kernels keep what they need.
#pragma once

#include <algorithm>
#include <cstdint>

#include "graft/tensor.hpp"
#include "ops/workspace_parts.hpp"

namespace graft::ops {

/// A segment is a class of an item.
struct SuppressionSizes {
  explicit SuppressionSizes(const Problem& problem)
      : boxes(problem.inputs[1].extents[2]),
        classes(problem.inputs[1].extents[1]),
        segments(problem.inputs[1].extents[0] * classes),
        most(segments == 0 ? 0 : problem.outputs[0].extents[0] / segments) {}

  std::int64_t boxes;
  std::int64_t classes;
  std::int64_t segments;
  std::int64_t most;  ///< That a segment may select.
};

/// Byte offsets in the workspace.
struct SuppressionPlan : WorkspaceParts {
  /// What CUB says that it needs for two buffers of keys and values, with room to spare.
  static constexpr std::int64_t sort_bytes = 4096;
  static constexpr int chunk_tile = 64;
  static constexpr int chunk_tiles = 16;
  /// Chunks are for segments that may select more boxes than this, and for so many segments at most.
  static constexpr std::int64_t few_selected = 512;
  static constexpr std::int64_t most_chunked = 128;

  explicit SuppressionPlan(const SuppressionSizes& sizes) {
    const std::int64_t candidates = sizes.segments * sizes.boxes;
    const std::int64_t selected = sizes.segments * sizes.most;
    for (std::int64_t& each : keys) each = add(candidates * 4);
    for (std::int64_t& each : values) each = add(candidates * 4);
    begins = add(sizes.segments * 4);
    ends = add(sizes.segments * 4);
    counts = add(sizes.segments * 4);
    starts = add(sizes.segments * 8);
    selected_indices = add(selected * 4);
    selected_boxes = add(selected * 16);
    sort = add(sort_bytes);
    // Of as many as may be, even where there are more segments: sizes that grow never need less.
    const std::int64_t chunked = sizes.most > few_selected ? std::min(sizes.segments, most_chunked) : 0;
    suppressed = add(chunked * chunk_tiles * 8);
    overlapped = add(chunked * chunk_tile * chunk_tiles * chunk_tiles * 8);
  }

  std::int64_t keys[2] = {};
  std::int64_t values[2] = {};
  std::int64_t begins = 0;
  std::int64_t ends = 0;
  std::int64_t counts = 0;
  std::int64_t starts = 0;
  std::int64_t selected_indices = 0;
  std::int64_t selected_boxes = 0;
  std::int64_t sort = 0;
  std::int64_t suppressed = 0;  ///< See ChunkTask.
  std::int64_t overlapped = 0;
};

}  // namespace graft::ops

// The sizes of a problem of NonMaxSuppression, and the workspace of its CUDA kernels.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/workspace_parts.hpp"
#include "graft/operator/tensor.hpp"

namespace graft::ops {

/// The sizes of a problem. A segment consists of the boxes and scores of one class of one item.
struct SuppressionSizes {
  explicit SuppressionSizes(const Problem& problem)
      : boxes(problem.inputs[1].extents[2]),
        classes(problem.inputs[1].extents[1]),
        segments(problem.inputs[1].extents[0] * classes),
        most(segments == 0 ? 0 : problem.outputs[0].extents[0] / segments) {}

  std::int64_t boxes;
  std::int64_t classes;
  std::int64_t segments;
  std::int64_t most;  ///< The largest number of boxes that a segment may select.
};

/// Byte offsets in the workspace of the CUDA kernels.
struct SuppressionPlan : WorkspaceParts {
  /// The temporary storage in bytes that CUB needs with double buffers for keys and values, with a margin.
  static constexpr std::int64_t sort_bytes = 4096;
  static constexpr int chunk_tile = 64;
  static constexpr int chunk_tiles = 16;
  /// The kernels of chunks.cuh run if a segment may select more boxes than few_selected, and for at most most_chunked
  /// segments.
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
    // The size for min(segments, most_chunked) segments is reserved even if there are more segments and no chunks, so
    // that a larger problem never needs less workspace.
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
  std::int64_t suppressed = 0;  ///< Byte offset of ChunkTask::suppressed.
  std::int64_t overlapped = 0;
};

}  // namespace graft::ops

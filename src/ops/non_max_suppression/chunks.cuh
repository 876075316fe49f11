// Selection by several blocks per segment, for segments that may select many boxes. Sorted candidates are processed in
// chunks of 1024. Several blocks compare each candidate of a chunk with the boxes that were selected before, and the
// candidates with each other; then one block per segment evaluates the resulting bits, 64 candidates at a time. On an
// H200, a single block took 24 ms for 25,200 boxes without a limit, because it compares each candidate with all
// selected boxes.
#pragma once

#include "kernels/launch.cuh"
#include "ops/non_max_suppression/candidates.cuh"
#include "ops/non_max_suppression/plan.hpp"

namespace graft::ops {

struct ChunkPolicy {
  static constexpr int threads = 256;
  static constexpr int tile = SuppressionPlan::chunk_tile;
  static constexpr int tiles = SuppressionPlan::chunk_tiles;
  static constexpr int chunk = tile * tiles;
  static constexpr int lanes_of_box = threads / tile;
  /// The number of shares into which the selected boxes are divided; one block compares one share with a tile.
  static constexpr int shares = 8;
  static constexpr int blocks = tiles * shares + tiles * tiles;
};

/// The inputs of all segments, and the state of each segment, which is kept from chunk to chunk.
template <class T>
struct ChunkTask {
  const T* boxes;
  const int* sorted;
  const int* begins;
  const int* ends;
  const std::int64_t* max_output;
  const float* iou_threshold;
  int* selected_indices;
  Box* selected_boxes;
  int* counts;
  TileBits* suppressed;  ///< The candidates of each tile that overlap boxes selected in earlier chunks.
  /// For each candidate of the chunk, a set of bits for each tile: the later candidates that it suppresses if it is
  /// selected.
  TileBits* overlapped;
  Segments sizes;

  /// Returns the number of candidates in a chunk; 0 after the last one, or if the segment has reached its limit.
  [[nodiscard]] __device__ int chunk_size(int segment, int chunk, int limit) const {
    const int left = ends[segment] - begins[segment] - chunk * ChunkPolicy::chunk;
    return counts[segment] >= limit ? 0 : ::max(0, ::min(left, ChunkPolicy::chunk));
  }
  [[nodiscard]] __device__ const int* sorted_of(int segment, int chunk) const {
    return sorted + begins[segment] + chunk * ChunkPolicy::chunk;
  }
  [[nodiscard]] __device__ const T* boxes_of(int segment) const {
    return boxes + static_cast<std::int64_t>(segment / sizes.classes) * sizes.boxes * 4;
  }
  [[nodiscard]] __device__ Box* selected_of(int segment) const {
    return selected_boxes + static_cast<std::int64_t>(segment) * sizes.most;
  }
  [[nodiscard]] __device__ TileBits* overlapped_of(int segment) const {
    return overlapped + static_cast<std::int64_t>(segment) * ChunkPolicy::chunk * ChunkPolicy::tiles;
  }
};

/// Computes which candidates of a chunk overlap selected boxes, and which overlap each other. The first blocks of a
/// segment compare a tile with a share of the selected boxes each; each further block compares two tiles with each
/// other.
template <class T>
__global__ void __launch_bounds__(ChunkPolicy::threads)
    compare_chunk(const __grid_constant__ ChunkTask<T> task, int chunk) {
  using P = ChunkPolicy;
  const int segment = static_cast<int>(blockIdx.x) / P::blocks;
  const int block = static_cast<int>(blockIdx.x) % P::blocks;
  const int size = task.chunk_size(segment, chunk, task.sizes.limit(task.max_output));
  const bool is_with_selected = block < P::tiles * P::shares;
  const int pair = block - P::tiles * P::shares;
  const int tile = is_with_selected ? block / P::shares : pair / P::tiles;
  if (tile * P::tile >= size) return;
  const int* sorted = task.sorted_of(segment, chunk);
  const T* boxes = task.boxes_of(segment);
  const float threshold = *task.iou_threshold;
  const int row = static_cast<int>(threadIdx.x) / P::lanes_of_box;
  const int lane = static_cast<int>(threadIdx.x) % P::lanes_of_box;
  const int candidate = tile * P::tile + row;
  const bool exists = candidate < size;
  const Box own = load_box(boxes, sorted[exists ? candidate : 0], task.sizes.is_center);
  if (is_with_selected) {
    const Box* selected = task.selected_of(segment);
    const int count = task.counts[segment];
    const int share = block % P::shares;
    bool is_suppressed = false;
    for (int other = share * P::lanes_of_box + lane; other < count && exists && !is_suppressed;
         other += P::shares * P::lanes_of_box) {
      is_suppressed = overlaps(own, selected[other], threshold);
    }
    if (is_suppressed) atomicOr(task.suppressed + segment * P::tiles + tile, TileBits{1} << row);
    return;
  }

  const int other_tile = pair % P::tiles;
  const int others = ::min(P::tile, size - other_tile * P::tile);
  if (other_tile < tile || others <= 0) return;
  __shared__ Box other_boxes[P::tile];
  if (static_cast<int>(threadIdx.x) < others) {
    other_boxes[threadIdx.x] =
        load_box(boxes, sorted[other_tile * P::tile + static_cast<int>(threadIdx.x)], task.sizes.is_center);
  }
  __syncthreads();
  TileBits bits = 0;
  const int first = other_tile == tile ? row + 1 : 0;
  for (int other = lane; other < others; other += P::lanes_of_box) {
    if (other >= first && exists && overlaps(other_boxes[other], own, threshold)) bits |= TileBits{1} << other;
  }
  constexpr unsigned all_lanes = 0xFFFFFFFFU;
  for (int distance = 1; distance < P::lanes_of_box; distance *= 2) {
    bits |= __shfl_xor_sync(all_lanes, bits, distance);
  }
  if (lane == 0 && exists) task.overlapped_of(segment)[candidate * P::tiles + other_tile] = bits;
}

/// Selects boxes from a chunk, with one block per segment.
template <class T>
__global__ void __launch_bounds__(ChunkPolicy::threads)
    select_in_chunk(const __grid_constant__ ChunkTask<T> task, int chunk) {
  using P = ChunkPolicy;
  __shared__ TileBits removed[P::tiles];
  __shared__ TileBits within[P::tile];
  __shared__ TileBits kept;
  const int segment = static_cast<int>(blockIdx.x);
  const int limit = task.sizes.limit(task.max_output);
  const int size = task.chunk_size(segment, chunk, limit);
  if (size == 0) return;
  const int* sorted = task.sorted_of(segment, chunk);
  const T* boxes = task.boxes_of(segment);
  const TileBits* overlapped = task.overlapped_of(segment);
  Box* selected = task.selected_of(segment);
  int* indices = task.selected_indices + static_cast<std::int64_t>(segment) * task.sizes.most;
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < P::tiles) {
    removed[thread] = task.suppressed[segment * P::tiles + thread];
    task.suppressed[segment * P::tiles + thread] = 0;  // Prepares the next chunk.
  }
  int count = task.counts[segment];
  for (int tile = 0; tile * P::tile < size && count < limit; ++tile) {
    const int in_tile = ::min(P::tile, size - tile * P::tile);
    if (thread < in_tile) within[thread] = overlapped[(tile * P::tile + thread) * P::tiles + tile];
    __syncthreads();
    if (thread == 0) {
      TileBits left = ~removed[tile];
      if (in_tile < P::tile) left &= (TileBits{1} << in_tile) - 1;
      kept = select_in_tile(left, within, limit - count);
    }
    __syncthreads();
    const TileBits chosen = kept;
    if (thread < P::tile && (chosen >> thread & 1U) != 0) {
      const int at = count + __popcll(chosen & ((TileBits{1} << thread) - 1));
      const int index = sorted[tile * P::tile + thread];
      indices[at] = index;
      selected[at] = load_box(boxes, index, task.sizes.is_center);
    }
    // Each thread accumulates a part of the selected rows for one later tile.
    constexpr int rows = P::tile * P::tiles / P::threads;
    const int later = thread % P::tiles;
    const int first = thread / P::tiles * rows;
    TileBits bits = 0;
    for (int row = first; row < first + rows; ++row) {
      const bool is_read = later > tile && later * P::tile < size && (chosen >> row & 1U) != 0;
      if (is_read) bits |= overlapped[(tile * P::tile + row) * P::tiles + later];
    }
    if (bits != 0) atomicOr(removed + later, bits);
    count += __popcll(chosen);
    __syncthreads();  // The array `removed` is complete, and `within` and `kept` may be written again.
  }
  if (thread == 0) task.counts[segment] = count;
}

template <class T>
[[nodiscard]] Status select_by_chunks(const ChunkTask<T>& task, std::int64_t segments, const char* what,
                                      const CudaContext& context) {
  using P = ChunkPolicy;
  if (segments == 0) return {};
  const auto clear = [&](void* address, std::int64_t bytes) {
    return cuda_status(cudaMemsetAsync(address, 0, static_cast<std::size_t>(bytes), context.stream), what);
  };
  if (Status status = clear(task.counts, segments * 4); !status.ok()) return status;
  if (Status status = clear(task.suppressed, segments * P::tiles * 8); !status.ok()) return status;
  for (int chunk = 0; chunk * std::int64_t{P::chunk} < task.sizes.boxes; ++chunk) {
    if (Status status = launch(what, compare_chunk<T>, {segments * P::blocks, P::threads}, context, task, chunk);
        !status.ok()) {
      return status;
    }
    if (Status status = launch(what, select_in_chunk<T>, {segments, P::threads}, context, task, chunk); !status.ok()) {
      return status;
    }
  }
  return {};
}

}  // namespace graft::ops

// CUDA kernels of NonMaxSuppression. A segment is a class of an item; one block processes each segment. Candidates are
// the boxes above the threshold. CUB sorts them by score; the sort is stable, so among equal scores the first box stays
// first. Boxes are selected in tiles of 64: the boxes of a tile are compared with all boxes that were selected before
// and with each other, and the selection itself only evaluates bits. It ends when a segment reaches its limit. If the
// limit may be high, several blocks compare the boxes, see chunks.cuh. Another kernel computes where the indices of
// each segment begin, and the last kernel writes them.
#include <cub/device/device_segmented_radix_sort.cuh>

#include "kernels/launch.cuh"
#include "kernels/scan.cuh"
#include "kernels/sort.cuh"
#include "kernels/vector.cuh"
#include "ops/non_max_suppression/candidates.cuh"
#include "ops/non_max_suppression/chunks.cuh"
#include "ops/non_max_suppression/non_max_suppression.hpp"
#include "ops/non_max_suppression/plan.hpp"

namespace graft::ops {
namespace {

constexpr int warp = 32;
constexpr int block_threads = 1024;
constexpr int tile = 64;
constexpr int select_threads = 512;
constexpr int lanes_of_box = select_threads / tile;
static_assert(warp % lanes_of_box == 0 && tile % lanes_of_box == 0);

/// Writes the scores (as sort keys) and the box indices of the candidates of each segment, in the order of the boxes.
/// -0 becomes 0 in the keys, so that both zeros sort as equal.
template <class T>
__global__ void find_candidates(const T* scores, const float* threshold, float* keys, int* values, int* begins,
                                int* ends, int boxes) {
  const int begin = static_cast<int>(blockIdx.x) * boxes;
  const float limit = *threshold;
  int count = 0;
  for (int first = 0; first < boxes; first += block_threads) {
    const int box = first + static_cast<int>(threadIdx.x);
    const float score = box < boxes ? static_cast<float>(scores[begin + box]) : 0.F;
    const bool is_high = score > limit || (limit == NonMaxSuppression::no_threshold && score == score);
    const bool is_candidate = box < boxes && is_high;
    const BlockSums<int> sums = block_sums<block_threads / warp>(is_candidate ? 1 : 0);
    if (is_candidate) {
      keys[begin + count + sums.before] = score == 0.F ? 0.F : score;
      values[begin + count + sums.before] = box;
    }
    count += sums.all;
  }
  if (threadIdx.x != 0) return;
  begins[blockIdx.x] = begin;
  ends[blockIdx.x] = begin + count;
}

template <class T>
__global__ void select_boxes(const T* boxes, const int* sorted, const int* begins, const int* ends,
                             const std::int64_t* max_output, const float* iou_threshold, int* selected_indices,
                             Box* selected_boxes, int* counts, Segments sizes) {
  __shared__ Box tile_boxes[tile];
  __shared__ TileBits overlapped[tile];  // For each box of the tile, the later boxes that it suppresses.
  __shared__ TileBits alive;
  __shared__ TileBits kept;
  const int segment = static_cast<int>(blockIdx.x);
  const T* own_boxes = boxes + static_cast<std::int64_t>(segment / sizes.classes) * sizes.boxes * 4;
  int* own_indices = selected_indices + static_cast<std::int64_t>(segment) * sizes.most;
  Box* own_selected = selected_boxes + static_cast<std::int64_t>(segment) * sizes.most;
  const int most = sizes.limit(max_output);
  const float threshold = *iou_threshold;
  const int end = ends[segment];
  const int row = static_cast<int>(threadIdx.x) / lanes_of_box;
  const int lane = static_cast<int>(threadIdx.x) % lanes_of_box;
  int count = 0;
  for (int first = begins[segment]; first < end && count < most; first += tile) {
    const int in_tile = ::min(tile, end - first);
    if (threadIdx.x < tile) {
      if (static_cast<int>(threadIdx.x) < in_tile) {
        tile_boxes[threadIdx.x] = load_box(own_boxes, sorted[first + static_cast<int>(threadIdx.x)], sizes.is_center);
      }
      overlapped[threadIdx.x] = 0;
    }
    if (threadIdx.x == 0) alive = in_tile == tile ? ~TileBits{0} : (TileBits{1} << in_tile) - 1;
    __syncthreads();
    if (row < in_tile) {
      const Box own = tile_boxes[row];
      bool is_suppressed = false;
      for (int other = lane; other < count && !is_suppressed; other += lanes_of_box) {
        is_suppressed = overlaps(own, own_selected[other], threshold);
      }
      if (is_suppressed) atomicAnd(&alive, ~(TileBits{1} << row));
      TileBits after = 0;
      for (int other = row + 1 + lane; other < in_tile; other += lanes_of_box) {
        if (overlaps(tile_boxes[other], own, threshold)) after |= TileBits{1} << other;
      }
      if (after != 0) atomicOr(&overlapped[row], after);
    }
    __syncthreads();
    if (threadIdx.x == 0) kept = select_in_tile(alive, overlapped, most - count);
    __syncthreads();
    const TileBits chosen = kept;
    if (threadIdx.x < tile && (chosen >> threadIdx.x & 1U) != 0) {
      const int at = count + __popcll(chosen & ((TileBits{1} << threadIdx.x) - 1));
      own_indices[at] = sorted[first + static_cast<int>(threadIdx.x)];
      own_selected[at] = tile_boxes[threadIdx.x];
    }
    count += __popcll(chosen);
    // Synchronizes before the tile is overwritten, and makes the selected boxes visible to the whole block.
    __syncthreads();
  }
  if (threadIdx.x == 0) counts[segment] = count;
}

/// Sets starts[segment] to the number of boxes that earlier segments have selected, and `total` to the number for all
/// segments.
template <class Size>
__global__ void number_segments(const int* counts, std::int64_t* starts, Size* total, std::int64_t segments) {
  std::int64_t before = 0;
  for (std::int64_t first = 0; first < segments; first += block_threads) {
    const std::int64_t segment = first + threadIdx.x;
    const int own = segment < segments ? counts[segment] : 0;
    const BlockSums<int> sums = block_sums<block_threads / warp>(own);
    if (segment < segments) starts[segment] = before + sums.before;
    before += sums.all;
  }
  if (threadIdx.x == 0) *total = static_cast<Size>(before);
}

__global__ void write_indices(const int* selected_indices, const int* counts, const std::int64_t* starts,
                              std::int64_t* indices, Segments sizes) {
  const int segment = static_cast<int>(blockIdx.x);
  const int* own = selected_indices + static_cast<std::int64_t>(segment) * sizes.most;
  std::int64_t* to = indices + starts[segment] * 3;
  const int count = counts[segment];
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) {
    to[i * std::int64_t{3}] = segment / sizes.classes;
    to[i * std::int64_t{3} + 1] = segment % sizes.classes;
    to[i * std::int64_t{3} + 2] = own[i];
  }
}

/// Calls `f` with a value of the device type of the boxes and scores, f32 or f16.
template <class F>
Status dispatch_scores(DType dtype, F&& f) {
  if (dtype == DType::f16) return f(__half{});
  return f(float{});
}

Status fits_segments(const NonMaxSuppression& /*op*/, const Problem& problem) {
  constexpr std::int64_t most = 0x7FFFFFFF;
  const std::int64_t scores = problem.inputs[1].extents.element_count();
  if (scores <= most) return {};
  return unsupported("supports at most 2147483647 scores, found " + std::to_string(scores));
}

Status fits_chunks(const NonMaxSuppression& op, const Problem& problem) {
  const SuppressionSizes sizes(problem);
  if (sizes.most <= SuppressionPlan::few_selected)
    return unsupported("supports only problems in which more than 512 boxes of a class may be selected");
  if (sizes.segments > SuppressionPlan::most_chunked)
    return unsupported("supports at most 128 classes in all items together");
  return fits_segments(op, problem);
}

/// Sorts the candidates of each segment by descending score. Afterwards the current buffers of `keys` and `values`
/// contain the results.
Status sort_candidates(const SuppressionSizes& sizes, const SuppressionPlan& plan, std::byte* workspace,
                       cub::DoubleBuffer<float>& keys, cub::DoubleBuffer<int>& values, const int* begins,
                       const int* ends, const CudaContext& context) {
  constexpr int key_bits = 32;
  const auto sort = [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceSegmentedRadixSort::SortPairsDescending(
        scratch, bytes, keys, values, static_cast<int>(sizes.segments * sizes.boxes), static_cast<int>(sizes.segments),
        begins, ends, 0, key_bits, context.stream);
  };
  return sort_within(NonMaxSuppression::name, sort, workspace + plan.sort, SuppressionPlan::sort_bytes);
}

template <bool by_chunks>
Status run_suppression(const NonMaxSuppression& op, const Problem& problem, const Buffers& buffers,
                       const CudaContext& context) {
  constexpr const char* what = NonMaxSuppression::name;
  const SuppressionSizes sizes(problem);
  const SuppressionPlan plan(sizes);
  auto* workspace = static_cast<std::byte*>(buffers.workspace);
  auto* begins = reinterpret_cast<int*>(workspace + plan.begins);
  auto* ends = reinterpret_cast<int*>(workspace + plan.ends);
  auto* counts = reinterpret_cast<int*>(workspace + plan.counts);
  auto* starts = reinterpret_cast<std::int64_t*>(workspace + plan.starts);
  auto* selected_indices = reinterpret_cast<int*>(workspace + plan.selected_indices);
  auto* selected_boxes = reinterpret_cast<Box*>(workspace + plan.selected_boxes);
  cub::DoubleBuffer<float> keys(reinterpret_cast<float*>(workspace + plan.keys[0]),
                                reinterpret_cast<float*>(workspace + plan.keys[1]));
  cub::DoubleBuffer<int> values(reinterpret_cast<int*>(workspace + plan.values[0]),
                                reinterpret_cast<int*>(workspace + plan.values[1]));
  const Segments segments{static_cast<int>(sizes.boxes), static_cast<int>(sizes.classes), static_cast<int>(sizes.most),
                          op.center_point_box != 0};
  const Status selected = dispatch_scores(problem.inputs[0].dtype, [&](auto element) -> Status {
    using T = decltype(element);
    if (Status found = launch(what, find_candidates<T>, {sizes.segments, block_threads}, context,
                              static_cast<const T*>(buffers.inputs[1]), static_cast<const float*>(buffers.inputs[4]),
                              keys.Current(), values.Current(), begins, ends, segments.boxes);
        !found.ok()) {
      return found;
    }
    if (sizes.segments > 0 && sizes.boxes > 0) {
      if (Status sorted = sort_candidates(sizes, plan, workspace, keys, values, begins, ends, context); !sorted.ok()) {
        return sorted;
      }
    }
    if constexpr (by_chunks) {
      const ChunkTask<T> task{.boxes = static_cast<const T*>(buffers.inputs[0]),
                              .sorted = values.Current(),
                              .begins = begins,
                              .ends = ends,
                              .max_output = static_cast<const std::int64_t*>(buffers.inputs[2]),
                              .iou_threshold = static_cast<const float*>(buffers.inputs[3]),
                              .selected_indices = selected_indices,
                              .selected_boxes = selected_boxes,
                              .counts = counts,
                              .suppressed = reinterpret_cast<TileBits*>(workspace + plan.suppressed),
                              .overlapped = reinterpret_cast<TileBits*>(workspace + plan.overlapped),
                              .sizes = segments};
      return select_by_chunks(task, sizes.segments, what, context);
    }
    return launch(what, select_boxes<T>, {sizes.segments, select_threads}, context,
                  static_cast<const T*>(buffers.inputs[0]), values.Current(), begins, ends,
                  static_cast<const std::int64_t*>(buffers.inputs[2]), static_cast<const float*>(buffers.inputs[3]),
                  selected_indices, selected_boxes, counts, segments);
  });
  if (!selected.ok()) return selected;
  if (Status numbered = dispatch_size(problem.outputs[1].dtype, buffers.outputs[1],
                                      [&](auto* count) {
                                        using Size = std::remove_pointer_t<decltype(count)>;
                                        return launch(what, number_segments<Size>, {1, block_threads}, context, counts,
                                                      starts, count, sizes.segments);
                                      });
      !numbered.ok()) {
    return numbered;
  }
  constexpr int write_threads = 128;
  return launch(what, write_indices, {sizes.segments, write_threads}, context, selected_indices, counts, starts,
                static_cast<std::int64_t*>(buffers.outputs[0]), segments);
}

}  // namespace

std::span<const Variant<NonMaxSuppression>> cuda_kernels(const NonMaxSuppression& /*op*/) {
  static constexpr std::array variants{Variant<NonMaxSuppression>{"chunks", fits_chunks, run_suppression<true>},
                                       Variant<NonMaxSuppression>{"segments", fits_segments, run_suppression<false>}};
  return variants;
}

}  // namespace graft::ops

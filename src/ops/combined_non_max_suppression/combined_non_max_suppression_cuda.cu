// CUDA kernels of CombinedNonMaxSuppression. The scores of an item are divided into tiles. One kernel counts the
// candidates of each tile, a second adds the counts of an item up, and a third writes the candidates in order. CUB
// sorts the candidates of each item by score; the sort is stable, so among equal scores the first candidate stays
// first. One block per item then visits the candidates in groups of 64, as the kernels of NonMaxSuppression do: it
// compares a group with all detections and with each other, and the selection itself only evaluates bits. It ends with
// the last place for a detection.
//
// If only the top_k best candidates of an item are visited, and it has many more scores, a histogram of the scores'
// first bits shows which of them can be among these. The others are not candidates, so that few are sorted: CUB sorts
// the candidates of an item with one block.
#include <cub/device/device_segmented_radix_sort.cuh>

#include "kernels/launch.cuh"
#include "kernels/scan.cuh"
#include "kernels/sort.cuh"
#include "kernels/vector.cuh"
#include "ops/combined_non_max_suppression/combined_non_max_suppression.hpp"
#include "ops/combined_non_max_suppression/detection_box.hpp"
#include "ops/combined_non_max_suppression/plan.hpp"
#include "ops/non_max_suppression/candidates.cuh"

namespace graft::ops {
namespace {

using Op = CombinedNonMaxSuppression;

constexpr int warp = 32;
constexpr int find_threads = 256;
constexpr int sum_threads = 1024;
constexpr int group = 64;  // The number of candidates with one bit each in TileBits.
constexpr int select_threads = 512;
constexpr int lanes_of_box = select_threads / group;
static_assert(DetectionPlan::tile % find_threads == 0);

/// Returns the histogram bin of a score. Of two scores, the higher one has the same bin or a higher one.
__device__ int bin_of(float score) {
  static_assert(DetectionPlan::bins == 4096);
  constexpr int lower_bits = 20;
  const unsigned bits = __float_as_uint(score == 0.F ? 0.F : score);
  const unsigned sign = 0x80000000U;
  return static_cast<int>(((bits & sign) != 0 ? ~bits : bits | sign) >> lower_bits);
}

/// The inputs, outputs and attributes that the kernels share.
template <class T>
struct Detection {
  const T* boxes;
  const T* scores;
  const T* anchors;
  const int* lowest_bins;  ///< The lowest bin of each item whose scores are candidates, or null without such a bound.
  std::int32_t* num_detections;
  T* detection_boxes;
  T* detection_scores;
  std::int32_t* detection_classes;
  std::int32_t* detection_indices;
  int boxes_of_item;
  int classes;
  int most;   ///< The number of places for detections of an item.
  int tiles;  ///< The number of tiles of an item.
  int background;
  int empty;
  int top_k;           ///< 0 without a limit.
  int limit_of_class;  ///< 0 without a limit.
  float lowest;        ///< The lowest input that is a candidate.
  float iou_threshold;
  float extent;
  bool top_k_per_class;
  bool class_agnostic;
  bool has_boxes_of_classes;
  bool has_anchors;
  bool has_anchors_of_items;
  bool is_center;
  bool is_logit;
  bool clips;

  [[nodiscard]] __device__ int scores_of_item() const { return boxes_of_item * classes; }

  /// Returns the class of candidate `number`. Candidates are numbered in the order in which equal scores are visited.
  [[nodiscard]] __device__ int class_of(int number) const {
    return top_k_per_class ? number / boxes_of_item : number % classes;
  }
  [[nodiscard]] __device__ int box_of_number(int number) const {
    return top_k_per_class ? number % boxes_of_item : number / classes;
  }
  [[nodiscard]] __device__ float score_of(int item, int number) const {
    const std::int64_t first = static_cast<std::int64_t>(item) * scores_of_item();
    return static_cast<float>(scores[first + box_of_number(number) * classes + class_of(number)]);
  }
  /// Returns whether score `number` of an item is a candidate. Sets `score` to this score.
  [[nodiscard]] __device__ bool is_candidate(int item, int number, float& score) const {
    if (number >= scores_of_item()) return false;
    score = score_of(item, number);
    if (!(score >= lowest) || class_of(number) == background) return false;
    return lowest_bins == nullptr || bin_of(score) >= lowest_bins[item];
  }

  [[nodiscard]] static __device__ Coordinates read(const T* from) {
    return {{static_cast<float>(from[0]), static_cast<float>(from[1]), static_cast<float>(from[2]),
             static_cast<float>(from[3])}};
  }
  /// Returns the corners of candidate `number` of an item.
  [[nodiscard]] __device__ Coordinates corners(int item, int number) const {
    const int box = box_of_number(number);
    const std::int64_t first = static_cast<std::int64_t>(item) * boxes_of_item;
    const std::int64_t at = has_boxes_of_classes ? (first + box) * classes + class_of(number) : first + box;
    Coordinates found = read(boxes + at * 4);
    if (has_anchors) {
      found = refine(found, read(anchors + (has_anchors_of_items ? first + box : box) * 4), is_center);
    }
    return corners_of(found, is_center);
  }

  /// Writes candidate `number` as detection `at` of an item.
  __device__ void write(int item, int at, int number) const {
    const std::int64_t to = static_cast<std::int64_t>(item) * most + at;
    const Coordinates found = corners(item, number);
    for (int i = 0; i < 4; ++i) {
      detection_boxes[to * 4 + i] = static_cast<T>(clips ? clip_to_image(found.values[i]) : found.values[i]);
    }
    const float score = score_of(item, number);
    detection_scores[to] = static_cast<T>(is_logit ? logistic(score) : score);
    detection_classes[to] = class_of(number);
    detection_indices[to] = (has_boxes_of_classes ? class_of(number) * boxes_of_item : 0) + box_of_number(number);
  }
  __device__ void write_empty(int item, int at) const {
    const std::int64_t to = static_cast<std::int64_t>(item) * most + at;
    for (int i = 0; i < 4; ++i) detection_boxes[to * 4 + i] = static_cast<T>(0.F);
    detection_scores[to] = static_cast<T>(0.F);
    detection_classes[to] = empty;
    detection_indices[to] = empty;
  }
};

/// The addresses of the kernels' intermediate results in the workspace.
struct DetectionBuffers {
  int* found;
  int* begins;
  int* ends;
  int* visited;   ///< The number of visited candidates of each class of each item.
  int* detected;  ///< The number of detections of each class of each item.
  Box* kept_boxes;
  int* kept_classes;
};

/// Adds the candidates of a tile to the histogram of its item.
template <class T>
__global__ void __launch_bounds__(find_threads)
    add_to_histogram(const __grid_constant__ Detection<T> task, int* histograms) {
  constexpr int bins = DetectionPlan::bins;
  __shared__ int counts[bins];
  for (int bin = static_cast<int>(threadIdx.x); bin < bins; bin += find_threads) counts[bin] = 0;
  __syncthreads();
  const int item = static_cast<int>(blockIdx.x) / task.tiles;
  const int first = static_cast<int>(blockIdx.x) % task.tiles * static_cast<int>(DetectionPlan::tile);
  for (int i = static_cast<int>(threadIdx.x); i < DetectionPlan::tile; i += find_threads) {
    float score = 0;
    if (task.is_candidate(item, first + i, score)) atomicAdd(counts + bin_of(score), 1);
  }
  __syncthreads();
  int* own = histograms + static_cast<std::int64_t>(item) * bins;
  for (int bin = static_cast<int>(threadIdx.x); bin < bins; bin += find_threads) {
    if (counts[bin] > 0) atomicAdd(own + bin, counts[bin]);
  }
}

/// Sets lowest_bins[item] to the highest bin that has at least `top_k` candidates together with the bins above it, or
/// to 0 if the item has fewer candidates. Each thread adds up a few bins, the first thread the highest.
__global__ void __launch_bounds__(sum_threads) find_lowest_bins(const int* histograms, int* lowest_bins, int top_k) {
  constexpr int bins = DetectionPlan::bins;
  constexpr int bins_of_thread = bins / sum_threads;
  static_assert(bins % sum_threads == 0);
  const int* own = histograms + static_cast<std::int64_t>(blockIdx.x) * bins;
  const int highest = bins - 1 - static_cast<int>(threadIdx.x) * bins_of_thread;
  int count = 0;
  for (int i = 0; i < bins_of_thread; ++i) count += own[highest - i];
  const BlockSums<int> sums = block_sums<sum_threads / warp>(count);
  if (threadIdx.x == 0 && sums.all < top_k) lowest_bins[blockIdx.x] = 0;
  if (sums.before >= top_k || sums.before + count < top_k) return;
  int bin = highest;
  for (int above = sums.before + own[bin]; above < top_k; above += own[bin]) --bin;
  lowest_bins[blockIdx.x] = bin;
}

template <class T>
__global__ void __launch_bounds__(find_threads)
    count_candidates(const __grid_constant__ Detection<T> task, int* found) {
  const int item = static_cast<int>(blockIdx.x) / task.tiles;
  const int first = static_cast<int>(blockIdx.x) % task.tiles * static_cast<int>(DetectionPlan::tile);
  int count = 0;
  for (int i = static_cast<int>(threadIdx.x); i < DetectionPlan::tile; i += find_threads) {
    float score = 0;
    if (task.is_candidate(item, first + i, score)) ++count;
  }
  const BlockSums<int> sums = block_sums<find_threads / warp>(count);
  if (threadIdx.x == 0) found[blockIdx.x] = sums.all;
}

/// Replaces the number of candidates of each tile of an item with the number of candidates in the earlier tiles of the
/// item. Sets begins and ends to the range of each item's candidates among the sort keys.
__global__ void __launch_bounds__(sum_threads)
    add_up_candidates(int* found, int* begins, int* ends, int tiles, int scores_of_item) {
  int* own = found + static_cast<std::int64_t>(blockIdx.x) * tiles;
  int before = 0;
  for (int first = 0; first < tiles; first += sum_threads) {
    const int tile = first + static_cast<int>(threadIdx.x);
    const BlockSums<int> sums = block_sums<sum_threads / warp>(tile < tiles ? own[tile] : 0);
    if (tile < tiles) own[tile] = before + sums.before;
    before += sums.all;
  }
  if (threadIdx.x != 0) return;
  begins[blockIdx.x] = static_cast<int>(blockIdx.x) * scores_of_item;
  ends[blockIdx.x] = static_cast<int>(blockIdx.x) * scores_of_item + before;
}

/// Writes the scores (as sort keys) and the numbers of the candidates of each item, in the order of their numbers. -0
/// becomes 0 in the keys, so that both zeros sort as equal.
template <class T>
__global__ void __launch_bounds__(find_threads)
    write_candidates(const __grid_constant__ Detection<T> task, const int* before, float* keys, int* values) {
  const int item = static_cast<int>(blockIdx.x) / task.tiles;
  const int first = static_cast<int>(blockIdx.x) % task.tiles * static_cast<int>(DetectionPlan::tile);
  int to = item * task.scores_of_item() + before[blockIdx.x];
  for (int i = static_cast<int>(threadIdx.x); i < DetectionPlan::tile; i += find_threads) {
    float score = 0;
    const bool is_candidate = task.is_candidate(item, first + i, score);
    const BlockSums<int> sums = block_sums<find_threads / warp>(is_candidate ? 1 : 0);
    if (is_candidate) {
      keys[to + sums.before] = score == 0.F ? 0.F : score;
      values[to + sums.before] = first + i;
    }
    to += sums.all;
  }
}

template <class T>
__global__ void __launch_bounds__(select_threads)
    select_detections(const __grid_constant__ Detection<T> task, const int* sorted, DetectionBuffers memory) {
  __shared__ Box boxes[group];
  __shared__ int classes[group];
  __shared__ int ranks[group];            // The number of earlier candidates of the group with the same class.
  __shared__ TileBits overlapped[group];  // For each candidate of the group, the later candidates that it suppresses.
  __shared__ TileBits alive;
  __shared__ TileBits kept;
  const int item = static_cast<int>(blockIdx.x);
  Box* kept_boxes = memory.kept_boxes + static_cast<std::int64_t>(item) * task.most;
  int* kept_classes = memory.kept_classes + static_cast<std::int64_t>(item) * task.most;
  int* visited = memory.visited + static_cast<std::int64_t>(item) * task.classes;
  int* detected = memory.detected + static_cast<std::int64_t>(item) * task.classes;
  const int thread = static_cast<int>(threadIdx.x);
  const int row = thread / lanes_of_box;
  const int lane = thread % lanes_of_box;
  const int begin = memory.begins[item];
  const bool limits_item = task.top_k > 0 && !task.top_k_per_class;
  const bool limits_classes = task.top_k > 0 && task.top_k_per_class;
  const int end = limits_item ? begin + ::min(memory.ends[item] - begin, task.top_k) : memory.ends[item];
  const auto suppresses = [&](const Box& a, int class_of_a, const Box& b, int class_of_b) {
    return (task.class_agnostic || class_of_a == class_of_b) && overlaps(a, b, task.iou_threshold, task.extent);
  };
  int count = 0;
  for (int first = begin; first < end && count < task.most; first += group) {
    const int in_group = ::min(group, end - first);
    if (thread < group) {
      if (thread < in_group) {
        const int number = sorted[first + thread];
        boxes[thread] = box_of(task.corners(item, number).values, false);
        classes[thread] = task.class_of(number);
      }
      overlapped[thread] = 0;
      ranks[thread] = 0;
    }
    if (thread == 0) alive = in_group == group ? ~TileBits{0} : (TileBits{1} << in_group) - 1;
    __syncthreads();
    if (row < in_group) {
      const Box own = boxes[row];
      const int own_class = classes[row];
      bool is_suppressed = false;
      for (int other = lane; other < count && !is_suppressed; other += lanes_of_box) {
        is_suppressed = suppresses(own, own_class, kept_boxes[other], kept_classes[other]);
      }
      if (is_suppressed) atomicAnd(&alive, ~(TileBits{1} << row));
      TileBits after = 0;
      for (int other = row + 1 + lane; other < in_group; other += lanes_of_box) {
        if (suppresses(boxes[other], classes[other], own, own_class)) after |= TileBits{1} << other;
      }
      if (after != 0) atomicOr(&overlapped[row], after);
      if (limits_classes) {
        int before = 0;
        for (int other = lane; other < row; other += lanes_of_box) before += classes[other] == own_class ? 1 : 0;
        if (before > 0) atomicAdd(&ranks[row], before);
      }
    }
    __syncthreads();
    if (limits_classes) {
      if (thread < in_group && visited[classes[thread]] + ranks[thread] >= task.top_k) {
        atomicAnd(&alive, ~(TileBits{1} << thread));
      }
      __syncthreads();
      if (thread < in_group) atomicAdd(&visited[classes[thread]], 1);
    }
    if (thread == 0) {
      TileBits left = alive;
      TileBits chosen = 0;
      for (int room = task.most - count; left != 0 && room > 0;) {
        const int next = __ffsll(static_cast<long long>(left)) - 1;
        left &= ~(TileBits{1} << next);
        if (task.limit_of_class > 0 && detected[classes[next]]++ >= task.limit_of_class) continue;
        chosen |= TileBits{1} << next;
        left &= ~overlapped[next];
        --room;
      }
      kept = chosen;
    }
    __syncthreads();
    const TileBits chosen = kept;
    if (thread < group && (chosen >> thread & 1U) != 0) {
      const int at = count + __popcll(chosen & ((TileBits{1} << thread) - 1));
      kept_boxes[at] = boxes[thread];
      kept_classes[at] = classes[thread];
      task.write(item, at, sorted[first + thread]);
    }
    count += __popcll(chosen);
    // Synchronizes before the group is overwritten, and makes the detections visible to the whole block.
    __syncthreads();
  }
  for (int at = count + thread; at < task.most; at += select_threads) task.write_empty(item, at);
  if (thread == 0) task.num_detections[item] = count;
}

Status fits_detections(const Op& /*op*/, const Problem& problem) {
  constexpr std::int64_t most = 0x7FFFFFFF;
  const DetectionSizes sizes(problem);
  const std::int64_t numbers = sizes.items * std::max(sizes.scores(), sizes.classes);
  if (numbers <= most && sizes.boxes <= most) return {};
  return unsupported("supports at most 2147483647 scores, found " + std::to_string(numbers));
}

template <class T>
Detection<T> make_detection(const Op& op, const DetectionSizes& sizes, const DetectionPlan& plan,
                            const Buffers& buffers) {
  const auto limit = [](std::int64_t value) { return value > 0 ? static_cast<int>(value) : 0; };
  return {.boxes = static_cast<const T*>(buffers.inputs[Op::boxes]),
          .scores = static_cast<const T*>(buffers.inputs[Op::scores]),
          .anchors = static_cast<const T*>(buffers.inputs[Op::anchors]),
          .lowest_bins = nullptr,
          .num_detections = static_cast<std::int32_t*>(buffers.outputs[Op::num_detections]),
          .detection_boxes = static_cast<T*>(buffers.outputs[Op::detection_boxes]),
          .detection_scores = static_cast<T*>(buffers.outputs[Op::detection_scores]),
          .detection_classes = static_cast<std::int32_t*>(buffers.outputs[Op::detection_classes]),
          .detection_indices = static_cast<std::int32_t*>(buffers.outputs[Op::detection_indices]),
          .boxes_of_item = static_cast<int>(sizes.boxes),
          .classes = static_cast<int>(sizes.classes),
          .most = static_cast<int>(sizes.most),
          .tiles = static_cast<int>(plan.tiles),
          .background = static_cast<int>(op.background_class),
          .empty = static_cast<int>(op.empty_class),
          .top_k = limit(op.top_k),
          .limit_of_class = limit(op.max_output_boxes_per_class),
          .lowest = lowest_candidate(op),
          .iou_threshold = op.iou_threshold,
          .extent = op.pixel_boxes ? 1.F : 0.F,
          .top_k_per_class = op.top_k_per_class,
          .class_agnostic = op.class_agnostic,
          .has_boxes_of_classes = sizes.has_boxes_of_classes,
          .has_anchors = sizes.has_anchors,
          .has_anchors_of_items = sizes.has_anchors_of_items,
          .is_center = op.box_coding != 0,
          .is_logit = op.score_activation,
          .clips = op.clip_boxes};
}

/// Returns whether an item has so many scores that it pays to find the candidates that are among the top_k best scores
/// first.
bool has_many_scores(const Op& op, const DetectionSizes& sizes) {
  return op.top_k > 0 && !op.top_k_per_class && sizes.scores() > 2 * op.top_k;
}

/// Sets lowest_bins[item] to the lowest histogram bin of each item whose scores can be among the top_k best ones.
/// Overwrites `histograms`.
template <class T>
Status bound_scores(const Detection<T>& task, const Grid& tiles, int* histograms, int* lowest_bins,
                    const DetectionSizes& sizes, const CudaContext& context) {
  const auto bytes = static_cast<std::size_t>(sizes.items * DetectionPlan::bins * 4);
  if (Status cleared = cuda_status(cudaMemsetAsync(histograms, 0, bytes, context.stream), Op::name); !cleared.ok()) {
    return cleared;
  }
  if (Status added = launch(Op::name, add_to_histogram<T>, tiles, context, task, histograms); !added.ok()) return added;
  return launch(Op::name, find_lowest_bins, {sizes.items, sum_threads}, context, histograms, lowest_bins, task.top_k);
}

template <class T>
Status run_detection(const Op& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
  constexpr const char* what = Op::name;
  const DetectionSizes sizes(problem);
  const DetectionPlan plan(sizes);
  auto* workspace = static_cast<std::byte*>(buffers.workspace);
  const auto integers = [&](std::int64_t at) { return reinterpret_cast<int*>(workspace + at); };
  int* counters = integers(plan.counters);
  const std::int64_t all_classes = sizes.items * sizes.classes;
  const DetectionBuffers memory{.found = integers(plan.found),
                                .begins = integers(plan.begins),
                                .ends = integers(plan.ends),
                                .visited = counters,
                                .detected = counters + all_classes,
                                .kept_boxes = reinterpret_cast<Box*>(workspace + plan.kept_boxes),
                                .kept_classes = integers(plan.kept_classes)};
  cub::DoubleBuffer<float> keys(reinterpret_cast<float*>(workspace + plan.keys[0]),
                                reinterpret_cast<float*>(workspace + plan.keys[1]));
  cub::DoubleBuffer<int> values(integers(plan.values[0]), integers(plan.values[1]));
  Detection<T> task = make_detection<T>(op, sizes, plan, buffers);
  if (all_classes > 0) {
    const auto bytes = static_cast<std::size_t>(2 * all_classes * 4);
    if (Status cleared = cuda_status(cudaMemsetAsync(counters, 0, bytes, context.stream), what); !cleared.ok()) {
      return cleared;
    }
  }
  const Grid tiles{sizes.items * plan.tiles, find_threads};
  if (has_many_scores(op, sizes)) {
    int* lowest_bins = integers(plan.lowest_bins);
    if (Status bounded = bound_scores(task, tiles, integers(plan.histograms), lowest_bins, sizes, context);
        !bounded.ok()) {
      return bounded;
    }
    task.lowest_bins = lowest_bins;
  }
  if (Status counted = launch(what, count_candidates<T>, tiles, context, task, memory.found); !counted.ok()) {
    return counted;
  }
  if (Status added = launch(what, add_up_candidates, {sizes.items, sum_threads}, context, memory.found, memory.begins,
                            memory.ends, task.tiles, static_cast<int>(sizes.scores()));
      !added.ok()) {
    return added;
  }
  if (Status written =
          launch(what, write_candidates<T>, tiles, context, task, memory.found, keys.Current(), values.Current());
      !written.ok()) {
    return written;
  }
  if (tiles.blocks > 0) {
    constexpr int key_bits = 32;
    const auto sort = [&](void* scratch, std::size_t& bytes) {
      return cub::DeviceSegmentedRadixSort::SortPairsDescending(
          scratch, bytes, keys, values, static_cast<int>(sizes.items * sizes.scores()), static_cast<int>(sizes.items),
          memory.begins, memory.ends, 0, key_bits, context.stream);
    };
    if (Status sorted = sort_within(what, sort, workspace + plan.sort, DetectionPlan::sort_bytes); !sorted.ok()) {
      return sorted;
    }
  }
  return launch(what, select_detections<T>, {sizes.items, select_threads}, context, task, values.Current(), memory);
}

Status run_detections(const Op& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
  if (problem.inputs[0].dtype == DType::f16) return run_detection<__half>(op, problem, buffers, context);
  return run_detection<float>(op, problem, buffers, context);
}

}  // namespace

std::span<const Variant<CombinedNonMaxSuppression>> cuda_kernels(const CombinedNonMaxSuppression& /*op*/) {
  static constexpr std::array variants{Variant<CombinedNonMaxSuppression>{"items", fits_detections, run_detections}};
  return variants;
}

}  // namespace graft::ops

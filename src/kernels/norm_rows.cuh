// Euclidean norms of contiguous vectors: the elements are read once and stay in registers until the norm is known.
#pragma once

#include <algorithm>

#include "kernels/cluster.cuh"
#include "kernels/launch.cuh"
#include "kernels/normalizer.cuh"
#include "kernels/reduce.cuh"
#include "kernels/row_vectors.cuh"

namespace graft {

/// The sizes of blocks and the work per thread, tuned on an H100. `in_warp`, `in_half_warp`, `in_block` and `most` are
/// numbers of vectors that a thread holds in registers.
struct RowsPolicy {
  static constexpr int in_warp = 2;
  static constexpr int in_half_warp = 4;  ///< Used for rows of 33 to 64 vectors, in tensors that fill the GPU.
  static constexpr int in_block = 4;
  /// The number of vectors per thread for rows that do not fit into a block with fewer, and for long rows in tensors
  /// that fill the GPU.
  static constexpr int most = 8;
  /// The longest row, in vectors, of which each thread of a block holds one vector.
  static constexpr int small_block = 256;
  static constexpr int fewest_lanes = 2;
  /// The largest number of vectors per block for which threads hold `in_block` vectors.
  static constexpr int most_with_few = 1024;
  /// The largest number of vectors per block for which a second block fits on the same multiprocessor.
  static constexpr int clustered_share = 4096;
  /// The shortest row, in vectors, that several blocks read faster than one block.
  static constexpr int least_clustered = 2560;
  /// The number of elements that a thread holds in registers if rows are too short for RowForm::shifted.
  static constexpr int single_elements = 4;
  static constexpr int shortest = 20;  ///< The longest row that is too short for shifted vectors, in elements.
};

namespace kernels {

/// The part of a row that one thread holds: R vectors of N elements, `step` vectors apart.
template <class T, int N, int R, RowForm Form>
struct RowPart {
  Vector<T, N> vectors[R];

  template <class AnyRows>
  __device__ void load(const T* x, const AnyRows& rows, std::int64_t begin, int first, int step) {
#pragma unroll
    for (int j = 0; j < R; ++j) {
      const RowVector place = rows.template vector<N, Form>(begin, first + j * step);
      vectors[j] = place.template load<T, N, Form>(x, rows.size());
    }
  }
  [[nodiscard]] __device__ float sum_of_squares() const {
    float sum = 0;
#pragma unroll
    for (int j = 0; j < R; ++j) sum += vectors[j].sum_of_squares();
    return sum;
  }
  template <class AnyRows>
  __device__ void store(T* y, const AnyRows& rows, std::int64_t begin, int first, int step, float factor,
                        const ChannelWeights& weights) {
#pragma unroll
    for (int j = 0; j < R; ++j) {
      vectors[j].forget();
      const RowVector place = rows.template vector<N, Form>(begin, first + j * step);
      if (!place.exists) continue;
      place.template store<T, N, Form>(y, weights.scale_run(vectors[j], factor, place.element, rows.length));
    }
  }
};

inline constexpr int rows_largest_block = 1024;

/// Normalizes each row with 1 << log2_lanes lanes of a warp.
template <class T, int N, int R, RowForm Form>
__global__ void __launch_bounds__(spread_most_threads)
    rows_by_lanes(const T* x, T* y, Rows rows, int log2_lanes, Normalizer normalizer, ChannelWeights weights) {
  const int lanes = 1 << log2_lanes;
  const int lane = static_cast<int>(threadIdx.x) & (lanes - 1);
  const std::int64_t row =
      static_cast<std::int64_t>(blockIdx.x) * (blockDim.x >> log2_lanes) + (threadIdx.x >> log2_lanes);
  const bool active = row < rows.count;
  const std::int64_t begin = rows.begin(row);
  RowPart<T, N, R, Form> part{};
  if (active) part.load(x, rows, begin, lane, lanes);
  float sum = part.sum_of_squares();
  for (int distance = lanes / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xFFFFFFFFU, sum, distance);
  if (active) part.store(y, rows, begin, lane, lanes, normalizer.factor<T>(sum), weights);
}

/// Normalizes each row with a block of whole warps, or with a cluster of such blocks.
template <class T, int N, int R, RowForm Form, bool Clustered, bool Weighted, class AnyRows>
__global__ void __launch_bounds__(rows_largest_block)
    rows_by_block(const T* x, T* y, AnyRows rows, Normalizer normalizer, ChannelWeights given_weights) {
  if constexpr (Clustered && !compiles_clusters) return;
  const ChannelWeights weights = weights_of_kernel<Weighted>(given_weights);
  constexpr int lanes = 32;
  __shared__ float sums[rows_largest_block / lanes];
  __shared__ float cluster_sums[max_cluster];
  BlockCluster<Clustered> cluster;
  const int threads = static_cast<int>(blockDim.x);
  const int warp = static_cast<int>(threadIdx.x) / lanes;
  const int first = cluster.rank() * threads + static_cast<int>(threadIdx.x);
  const int step = cluster.size() * threads;
  const std::int64_t begin = rows.begin(cluster.index());
  RowPart<T, N, R, Form> part;
  part.load(x, rows, begin, first, step);
  const float own = warp_sum(part.sum_of_squares());
  if (threadIdx.x % lanes == 0) sums[warp] = own;
  __syncthreads();
  float sum = 0;  // Every thread adds all sums, which saves a barrier.
  for (int i = 0; i < threads / lanes; ++i) sum += sums[i];
  if (cluster.size() > 1) {
    cluster.begin_sending();
    if (threadIdx.x == 0) cluster.send(cluster_sums, 1, 0, sum);
    cluster.receive();
    sum = 0;
    for (int i = 0; i < cluster.size(); ++i) sum += cluster_sums[i];
  }
  part.store(y, rows, begin, first, step, normalizer.factor<T>(sum), weights);
}

}  // namespace kernels

/// The longest row, in vectors, that one block normalizes (rows_capacity_of_block) and that a cluster normalizes.
inline constexpr int rows_capacity_of_block = kernels::rows_largest_block * RowsPolicy::most;
inline constexpr int rows_capacity = rows_capacity_of_block * max_cluster;

namespace kernels {

/// Normalizes each row with one block or one cluster. Used for rows of more than RowsPolicy::small_block vectors, and
/// for RowsInPieces.
template <class T, int N, RowForm Form, class AnyRows>
[[nodiscard]] Status run_rows_by_blocks(const char* what, const T* x, T* y, const AnyRows& rows,
                                        const Normalizer& normalizer, const ChannelWeights& weights,
                                        const DeviceTraits& device, const CudaContext& context) {
  using Policy = RowsPolicy;
  const auto vectors = static_cast<int>(rows.vectors(N));
  int cluster = 1;
  const auto run = [&]<int R>(std::integral_constant<int, R>) {
    const std::int64_t threads = ceil_divide(vectors, R * cluster);
    const Grid grid{rows.count * cluster, static_cast<int>(ceil_divide(threads, 32) * 32), cluster};
    const auto start = [&]<bool Weighted>(std::bool_constant<Weighted>) {
      auto* kernel = cluster > 1 ? rows_by_block<T, N, R, Form, true, Weighted, AnyRows>
                                 : rows_by_block<T, N, R, Form, false, Weighted, AnyRows>;
      return launch(what, kernel, grid, context, x, y, rows, normalizer, weights);
    };
    if constexpr (AnyRows::may_have_weights)
      return with_weighted(weights, start);
    else
      return start(std::false_type{});
  };
  const auto too_long = [&] {
    return vectors > AnyRows::most_in_one_block && vectors > Policy::clustered_share * cluster;
  };
  const auto too_few_blocks = [&] {
    return rows.count * cluster < device.multiprocessors && vectors >= Policy::least_clustered;
  };
  while (device.has_clusters() && cluster < max_cluster && (too_long() || too_few_blocks())) cluster *= 2;
  const bool fills = rows.count * cluster >= device.multiprocessors;
  if (vectors <= (fills ? Policy::most_with_few : rows_largest_block * Policy::in_block) * cluster) {
    return run(std::integral_constant<int, Policy::in_block>{});
  }
  return run(std::integral_constant<int, Policy::most>{});
}

}  // namespace kernels

template <class T, int N, RowForm Form>
[[nodiscard]] Status run_rows(const char* what, const T* x, T* y, const Rows& rows, const Normalizer& normalizer,
                              const ChannelWeights& weights, const DeviceTraits& device, const CudaContext& context) {
  using namespace kernels;
  using Policy = RowsPolicy;
  const auto by_lanes = [&](auto* kernel, int log2_lanes) {
    return launch(what, kernel, spread_grid(rows.count << log2_lanes, device), context, x, y, rows, log2_lanes,
                  normalizer, weights);
  };
  int log2_lanes = 0;
  if constexpr (Form == RowForm::shifted) {
    if (rows.length <= Policy::shortest) {
      while (Policy::single_elements << log2_lanes < rows.length) ++log2_lanes;
      return by_lanes(rows_by_lanes<T, 1, Policy::single_elements, RowForm::whole>, log2_lanes);
    }
  }
  const auto vectors = static_cast<int>(rows.vectors(N));
  const bool fills =
      rows.count * vectors >= std::int64_t{2} * device.multiprocessors * device.threads_per_multiprocessor;
  // Fewer lanes with several vectors each keep more loads in flight, if there are enough rows. Shifted rows use all
  // lanes, because each of their vectors needs more work.
  const auto halved = static_cast<int>(ceil_divide(vectors, Policy::in_warp));
  const int wanted = fills && Form != RowForm::shifted ? std::max(Policy::fewest_lanes, halved) : vectors;
  while (log2_lanes < 5 && 1 << log2_lanes < std::min(wanted, vectors)) ++log2_lanes;
  constexpr int half_warp = 16;
  if (fills && vectors > 32 && vectors <= half_warp * Policy::in_half_warp) {
    return by_lanes(rows_by_lanes<T, N, Policy::in_half_warp, Form>, 4);
  }
  if (vectors <= 1 << log2_lanes) return by_lanes(rows_by_lanes<T, N, 1, Form>, log2_lanes);
  if (vectors <= Policy::in_warp << log2_lanes) {
    return by_lanes(rows_by_lanes<T, N, Policy::in_warp, Form>, log2_lanes);
  }
  if (vectors <= Policy::small_block) {
    const Grid grid{rows.count, static_cast<int>(ceil_divide(vectors, 32) * 32)};
    return with_weighted(weights, [&]<bool Weighted>(std::bool_constant<Weighted>) {
      return launch(what, rows_by_block<T, N, 1, Form, false, Weighted, Rows>, grid, context, x, y, rows, normalizer,
                    weights);
    });
  }
  return run_rows_by_blocks<T, N, Form>(what, x, y, rows, normalizer, weights, device, context);
}

}  // namespace graft

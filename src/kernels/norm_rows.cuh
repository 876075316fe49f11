// Euclidean norms where each vector lies in one piece: its elements are read once and wait in registers for their norm.
#pragma once

#include <algorithm>
#include <cub/warp/warp_reduce.cuh>

#include "kernels/cluster.cuh"
#include "kernels/divisor.cuh"
#include "kernels/launch.cuh"
#include "kernels/normalizer.cuh"
#include "kernels/strides.cuh"

namespace graft {

/// Tuned on an H200: vectors that a thread holds.
struct RowsPolicy {
  static constexpr int in_warp = 2;
  static constexpr int in_half_warp = 4;  ///< Of rows of 33 to 64 vectors, of tensors that fill the GPU.
  static constexpr int in_small_block = 2;
  static constexpr int in_block = 4;
  static constexpr int most = 8;           ///< Of rows that fit only so, and of accesses narrower than 128 bits.
  static constexpr int small_block = 256;  ///< Vectors of a row up to which a block is small.
  static constexpr int fewest_lanes = 2;
  static constexpr int most_with_few = 2048;    ///< Vectors of a block up to which threads hold `in_block` of them.
  static constexpr int clustered_share = 4096;  ///< Vectors of a block that leave room for another one beside it.
  static constexpr int least_share = 512;       ///< Vectors of a row that are worth a block of a cluster.
};

/// `length` elements of every `pitch` are a vector; what lies between is not read as such and becomes zero.
struct Rows {
  std::int64_t count;
  int length;
  int pitch;

  static constexpr int most_in_one_block = 8192;  ///< Vectors; tuned on an H200.

  /// Where a row begins, and where its elements lie from there.
  [[nodiscard]] __device__ std::int64_t begin(std::int64_t row) const { return row * pitch; }
  [[nodiscard]] __device__ std::int64_t offset(int at) const { return at; }
};

/// The same for rows that lie in pieces of `piece` elements, `stride` elements apart (channels of all items).
struct RowsInPieces {
  std::int64_t count;
  int length;
  int pitch;  ///< The length.
  int piece;
  Divisor by_piece;
  std::int64_t stride;
  StridedLoop kept;

  static constexpr int most_in_one_block = RowsPolicy::clustered_share;

  [[nodiscard]] __device__ std::int64_t begin(std::int64_t row) const { return kept.offset(row); }
  [[nodiscard]] __device__ std::int64_t offset(int at) const {
    const int index = by_piece.quotient(at);
    return index * stride + (at - index * piece);
  }
};

namespace detail {

/// The part of a row that one thread holds: R vectors of N elements, `step` vectors apart. Padded: the pitch is longer
/// than the row.
template <class T, int N, int R, bool Padded>
struct RowPart {
  Vector<T, N> vectors[R];

  template <class AnyRows>
  __device__ void load(const T* row, const AnyRows& rows, int first, int step) {
#pragma unroll
    for (int j = 0; j < R; ++j) {
      const int at = (first + j * step) * N;
      vectors[j] = at < rows.length ? Vector<T, N>::load(row + rows.offset(at)) : Vector<T, N>::zero();
      if constexpr (Padded) vectors[j] = vectors[j].first(rows.length - at);
    }
  }
  [[nodiscard]] __device__ float sum_of_squares() const {
    float sum = 0;
#pragma unroll
    for (int j = 0; j < R; ++j) sum += vectors[j].sum_of_squares();
    return sum;
  }
  template <class AnyRows, class Weights>
  __device__ void store(T* row, const AnyRows& rows, int first, int step, float factor, const Weights& weights) {
#pragma unroll
    for (int j = 0; j < R; ++j) {
      vectors[j].forget();
      const int at = (first + j * step) * N;
      if (at >= rows.pitch) continue;
      Vector<T, N> result = weights.scale_run(vectors[j], factor, at, rows.length);
      if constexpr (Padded) result = result.first(rows.length - at);
      result.store(row + rows.offset(at));
    }
  }
};

inline constexpr int rows_threads = 128;
inline constexpr int rows_largest_block = 1024;

/// 1 << log2_lanes lanes of a warp to a row.
template <class T, int N, int R, bool Padded, class Weights>
__global__ void __launch_bounds__(rows_threads)
    rows_by_lanes(const T* x, T* y, Rows rows, int log2_lanes, Normalizer normalizer, Weights weights) {
  const int lanes = 1 << log2_lanes;
  const int lane = static_cast<int>(threadIdx.x) & (lanes - 1);
  const std::int64_t row =
      static_cast<std::int64_t>(blockIdx.x) * (rows_threads >> log2_lanes) + (threadIdx.x >> log2_lanes);
  const bool active = row < rows.count;
  RowPart<T, N, R, Padded> part{};
  if (active) part.load(x + row * rows.pitch, rows, lane, lanes);
  float sum = part.sum_of_squares();
  for (int distance = lanes / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xFFFFFFFFU, sum, distance);
  if (active) part.store(y + row * rows.pitch, rows, lane, lanes, normalizer.factor<T>(sum), weights);
}

/// A block of whole warps to a row, or a cluster of such blocks.
template <class T, int N, int R, bool Padded, bool Clustered, class AnyRows, class Weights>
__global__ void __launch_bounds__(rows_largest_block)
    rows_by_block(const T* x, T* y, AnyRows rows, Normalizer normalizer, Weights weights) {
  constexpr int lanes = 32;
  using Reduce = cub::WarpReduce<float>;
  __shared__ typename Reduce::TempStorage storage[rows_largest_block / lanes];
  __shared__ float sums[rows_largest_block / lanes];
  __shared__ float cluster_sums[max_cluster];
  BlockCluster<Clustered> cluster;
  const int threads = static_cast<int>(blockDim.x);
  const int warp = static_cast<int>(threadIdx.x) / lanes;
  const int first = cluster.rank() * threads + static_cast<int>(threadIdx.x);
  const int step = cluster.size() * threads;
  const std::int64_t offset = rows.begin(cluster.index());
  RowPart<T, N, R, Padded> part;
  part.load(x + offset, rows, first, step);
  const float warp_sum = Reduce(storage[warp]).Sum(part.sum_of_squares());
  if (threadIdx.x % lanes == 0) sums[warp] = warp_sum;
  __syncthreads();
  float sum = 0;  // every thread by itself, which spares a barrier
  for (int i = 0; i < threads / lanes; ++i) sum += sums[i];
  if (cluster.size() > 1) {
    cluster.begin_sending();
    if (threadIdx.x == 0) cluster.send(cluster_sums, 1, 0, sum);
    cluster.receive();
    sum = 0;
    for (int i = 0; i < cluster.size(); ++i) sum += cluster_sums[i];
  }
  part.store(y + offset, rows, first, step, normalizer.factor<T>(sum), weights);
}

}  // namespace detail

/// The longest row, in vectors of the width that is used, without clusters and with them.
inline constexpr int rows_capacity_of_block = detail::rows_largest_block * RowsPolicy::most;
inline constexpr int rows_capacity = rows_capacity_of_block * max_cluster;

namespace detail {

/// Rows of more vectors than a small block takes: a block or a cluster to each.
template <class T, int N, bool Padded, class AnyRows, class Weights>
[[nodiscard]] Status run_rows_by_blocks(const char* what, const T* x, T* y, const AnyRows& rows,
                                        const Normalizer& normalizer, const Weights& weights,
                                        const DeviceTraits& device, const CudaContext& context) {
  using Policy = RowsPolicy;
  const int vectors = static_cast<int>(ceil_divide(rows.pitch, N));
  int cluster = 1;
  const auto too_long = [&] {
    return vectors > AnyRows::most_in_one_block && vectors > Policy::clustered_share * cluster;
  };
  const auto too_few_blocks = [&] {
    return rows.count * cluster < device.multiprocessors && vectors >= 2 * cluster * Policy::least_share;
  };
  while (device.has_clusters() && cluster < max_cluster && (too_long() || too_few_blocks())) cluster *= 2;
  const auto run = [&]<int R>(std::integral_constant<int, R>) {
    const std::int64_t threads = ceil_divide(vectors, R * cluster);
    const Grid grid{rows.count * cluster, static_cast<int>(ceil_divide(threads, 32) * 32), cluster};
    auto* kernel = cluster > 1 ? rows_by_block<T, N, R, Padded, true, AnyRows, Weights>
                               : rows_by_block<T, N, R, Padded, false, AnyRows, Weights>;
    return launch(what, kernel, grid, context, x, y, rows, normalizer, weights);
  };
  const bool fills = rows.count * cluster >= device.multiprocessors;
  const bool narrow = N < widest<T> && fills;
  if (!narrow && vectors <= (fills ? Policy::most_with_few : rows_largest_block * Policy::in_block) * cluster) {
    return run(std::integral_constant<int, Policy::in_block>{});
  }
  return run(std::integral_constant<int, Policy::most>{});
}

}  // namespace detail

template <class T, int N, bool Padded = false, class Weights>
[[nodiscard]] Status run_rows(const char* what, const T* x, T* y, const Rows& rows, const Normalizer& normalizer,
                              const Weights& weights, const DeviceTraits& device, const CudaContext& context) {
  using namespace detail;
  using Policy = RowsPolicy;
  const int vectors = static_cast<int>(ceil_divide(rows.pitch, N));
  const bool fills =
      rows.count * vectors >= std::int64_t{2} * device.multiprocessors * device.threads_per_multiprocessor;
  // Fewer lanes with several vectors each keep more reads in flight, if there are rows enough.
  const auto halved = static_cast<int>(ceil_divide(vectors, Policy::in_warp));
  const int wanted = fills ? std::max(Policy::fewest_lanes, halved) : vectors;
  int log2_lanes = 0;
  while (log2_lanes < 5 && 1 << log2_lanes < std::min(wanted, vectors)) ++log2_lanes;
  constexpr int half_warp = 16;
  if (fills && vectors > 32 && vectors <= half_warp * Policy::in_half_warp) {
    return launch(what, rows_by_lanes<T, N, Policy::in_half_warp, Padded, Weights>,
                  {ceil_divide(rows.count, rows_threads / half_warp), rows_threads}, context, x, y, rows, 4, normalizer,
                  weights);
  }
  if constexpr (N < widest<T>) {
    // Narrow accesses are many: a warp that holds a whole row spares the barrier, which they would wait at.
    if (fills && vectors > 32 * Policy::in_warp && vectors <= 32 * Policy::most) {
      auto* kernel = vectors <= 32 * Policy::in_half_warp ? rows_by_lanes<T, N, Policy::in_half_warp, Padded, Weights>
                                                          : rows_by_lanes<T, N, Policy::most, Padded, Weights>;
      return launch(what, kernel, {ceil_divide(rows.count, rows_threads / 32), rows_threads}, context, x, y, rows, 5,
                    normalizer, weights);
    }
  }
  if (vectors <= Policy::in_warp << log2_lanes) {
    auto* kernel = vectors <= 1 << log2_lanes ? rows_by_lanes<T, N, 1, Padded, Weights>
                                              : rows_by_lanes<T, N, Policy::in_warp, Padded, Weights>;
    return launch(what, kernel, {ceil_divide(rows.count, rows_threads >> log2_lanes), rows_threads}, context, x, y,
                  rows, log2_lanes, normalizer, weights);
  }
  if (vectors <= Policy::small_block) {
    constexpr int held = Policy::in_small_block;
    const Grid grid{rows.count, static_cast<int>(ceil_divide(ceil_divide(vectors, held), 32) * 32)};
    return launch(what, rows_by_block<T, N, held, Padded, false, Rows, Weights>, grid, context, x, y, rows, normalizer,
                  weights);
  }
  return run_rows_by_blocks<T, N, Padded>(what, x, y, rows, normalizer, weights, device, context);
}

}  // namespace graft

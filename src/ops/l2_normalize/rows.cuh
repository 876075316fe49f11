// L2Normalize where each vector lies in one piece: its elements are read once and wait in registers for their norm.
#pragma once

#include <cub/block/block_reduce.cuh>

#include "kernels/launch.cuh"
#include "ops/l2_normalize/normalizer.cuh"

namespace graft {

/// `length` elements of every `pitch` are a vector; what lies between is not read as such and becomes zero.
struct Rows {
  std::int64_t count;
  int length;
  int pitch;
};

namespace detail {

/// The part of a row that one thread holds: R vectors of N elements, `step` vectors apart.
template <class T, int N, int R>
struct RowPart {
  Vector<T, N> vectors[R];

  __device__ void load(const T* row, const Rows& rows, int first, int step) {
#pragma unroll
    for (int j = 0; j < R; ++j) {
      const int at = (first + j * step) * N;
      vectors[j] = at < rows.length ? Vector<T, N>::load(row + at).first(rows.length - at) : Vector<T, N>::zero();
    }
  }
  [[nodiscard]] __device__ float sum_of_squares() const {
    float sum = 0;
#pragma unroll
    for (int j = 0; j < R; ++j) sum += vectors[j].sum_of_squares();
    return sum;
  }
  __device__ void store(T* row, const Rows& rows, int first, int step, float factor) const {
#pragma unroll
    for (int j = 0; j < R; ++j) {
      const int at = (first + j * step) * N;
      if (at < rows.pitch) multiplied(vectors[j], factor).first(rows.length - at).store(row + at);
    }
  }
};

inline constexpr int rows_threads = 256;

/// 1 << log2_lanes lanes of a warp to a row.
template <class T, int N, int R>
__global__ void __launch_bounds__(rows_threads)
    rows_by_lanes(const T* x, T* y, Rows rows, int log2_lanes, Normalizer normalizer) {
  const int lanes = 1 << log2_lanes;
  const int lane = static_cast<int>(threadIdx.x) & (lanes - 1);
  const std::int64_t row =
      static_cast<std::int64_t>(blockIdx.x) * (rows_threads >> log2_lanes) + (threadIdx.x >> log2_lanes);
  const bool active = row < rows.count;
  RowPart<T, N, R> part{};
  if (active) part.load(x + row * rows.pitch, rows, lane, lanes);
  float sum = part.sum_of_squares();
  for (int distance = lanes / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xFFFFFFFFU, sum, distance);
  if (active) part.store(y + row * rows.pitch, rows, lane, lanes, normalizer.factor<T>(sum));
}

/// A block to a row.
template <class T, int N, int R, int Threads>
__global__ void __launch_bounds__(Threads) rows_by_block(const T* x, T* y, Rows rows, Normalizer normalizer) {
  using Reduce = cub::BlockReduce<float, Threads>;
  __shared__ typename Reduce::TempStorage storage;
  __shared__ float factor;
  const std::int64_t offset = static_cast<std::int64_t>(blockIdx.x) * rows.pitch;
  RowPart<T, N, R> part;
  part.load(x + offset, rows, static_cast<int>(threadIdx.x), Threads);
  const float sum = Reduce(storage).Sum(part.sum_of_squares());
  if (threadIdx.x == 0) factor = normalizer.factor<T>(sum);
  __syncthreads();
  part.store(y + offset, rows, static_cast<int>(threadIdx.x), Threads, factor);
}

inline constexpr int rows_largest_block = 1024;
inline constexpr int rows_most_vectors = 8;  ///< A thread holds.

}  // namespace detail

/// The longest row, in vectors of the width that is used.
inline constexpr int rows_capacity = detail::rows_largest_block * detail::rows_most_vectors;

template <class T, int N>
[[nodiscard]] Status run_rows(const T* x, T* y, const Rows& rows, const Normalizer& normalizer,
                              const CudaContext& context) {
  using namespace detail;
  const auto by_lanes = [&](auto kernel, int vectors_per_lane) {
    int log2_lanes = 0;
    while (vectors_per_lane * N << log2_lanes < rows.pitch) ++log2_lanes;
    const std::int64_t blocks = ceil_divide(rows.count, rows_threads >> log2_lanes);
    return launch("L2Normalize rows", kernel, blocks, rows_threads, context, x, y, rows, log2_lanes, normalizer);
  };
  const auto by_block = [&](auto kernel, int threads) {
    return launch("L2Normalize rows", kernel, rows.count, threads, context, x, y, rows, normalizer);
  };
  constexpr int warp = 32 * N;
  if (rows.pitch <= warp) return by_lanes(rows_by_lanes<T, N, 1>, 1);
  if (rows.pitch <= 2 * warp) return by_lanes(rows_by_lanes<T, N, 2>, 2);
  if (rows.pitch <= 4 * warp) return by_lanes(rows_by_lanes<T, N, 4>, 4);
  if (rows.pitch <= 8 * warp) return by_lanes(rows_by_lanes<T, N, 8>, 8);
  if (rows.pitch <= rows_threads * 8 * N) return by_block(rows_by_block<T, N, 8, rows_threads>, rows_threads);
  return by_block(rows_by_block<T, N, rows_most_vectors, rows_largest_block>, rows_largest_block);
}

}  // namespace graft

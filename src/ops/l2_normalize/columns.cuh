// L2Normalize where vectors lie beside each other, element by element (channels of N,C,H,W): a block reads a tile of
// whole vectors once and keeps it in registers.
#pragma once

#include <algorithm>

#include "kernels/launch.cuh"
#include "ops/l2_normalize/normalizer.cuh"

namespace graft {

/// outer x reduced x inner elements, in row-major order.
struct Columns {
  std::int64_t outer;
  std::int64_t inner;
  int reduced;
  int channels = 0;  ///< Of chw32: those that are no padding.
};

namespace detail {

/// A block is 1 << log2_width threads wide along the columns and as high as its threads reach; thread (tx, ty) holds
/// the rows ty, ty + height, ... of N neighbouring columns. Chw32: N = 16 neighbours are half a pixel's vector of 32
/// channels, so they and the next thread's are summed as well.
template <class T, int N, int R, int Threads, bool Chw32>
__global__ void __launch_bounds__(Threads, 1024 / Threads)
    columns_in_registers(const T* x, T* y, Columns columns, int log2_width, Normalizer normalizer) {
  constexpr int S = Chw32 ? 1 : N;  // sums a thread keeps
  const int width = 1 << log2_width;
  const int height = Threads >> log2_width;
  const int tx = static_cast<int>(threadIdx.x) & (width - 1);
  const int ty = static_cast<int>(threadIdx.x) >> log2_width;
  const std::int64_t inner_vectors = columns.inner / N;
  const std::int64_t column = (static_cast<std::int64_t>(blockIdx.x) << log2_width) + tx;
  const bool active = column < columns.outer * inner_vectors;
  const std::int64_t outer = column / inner_vectors;
  const std::int64_t base = outer * columns.reduced * columns.inner + (column - outer * inner_vectors) * N;
  const auto valid_channels = [&](int row) { return Chw32 ? columns.channels - row * 2 * N - (tx & 1) * N : N; };

  Vector<T, N> tile[R];
#pragma unroll
  for (int j = 0; j < R; ++j) {
    const int row = ty + j * height;
    tile[j] =
        active && row < columns.reduced ? Vector<T, N>::load(x + base + row * columns.inner) : Vector<T, N>::zero();
  }
  float sums[S] = {};
  if constexpr (Chw32) {
#pragma unroll
    for (int j = 0; j < R; ++j) {
      tile[j] = tile[j].first(valid_channels(ty + j * height));
      sums[0] += tile[j].sum_of_squares();
    }
  } else {
    add_squares(tile, sums);
  }

  float factors[S];
  if (height == 1) {
    if constexpr (Chw32) sums[0] += __shfl_xor_sync(0xFFFFFFFFU, sums[0], 1);
#pragma unroll
    for (int i = 0; i < S; ++i) factors[i] = normalizer.factor<T>(sums[i]);
  } else {
    // Partial sums: a row for each warp, or for each ty where that is wider than a warp. Large blocks are narrow ones.
    constexpr int widest_large_block = 8;
    constexpr bool large = Threads > 512;
    __shared__ float partial[(large ? Threads / 32 * widest_large_block : Threads) * S];
    __shared__ float shared_factors[(large ? widest_large_block : Threads / 2) * S];
    for (int distance = 16; distance >= width; distance /= 2) {
#pragma unroll
      for (int i = 0; i < S; ++i) sums[i] += __shfl_xor_sync(0xFFFFFFFFU, sums[i], distance);
    }
    const int group = ::max(width, 32);
    const int groups = Threads / group;
    const int across = width * S;
    if ((static_cast<int>(threadIdx.x) & (group - 1)) < width) {
      float* mine = partial + static_cast<int>(threadIdx.x) / group * across + tx * S;
#pragma unroll
      for (int i = 0; i < S; ++i) mine[i] = sums[i];
    }
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < across; i += Threads) {
      float sum = 0;
      for (int g = 0; g < groups; ++g) {
        sum += partial[g * across + i];
        if constexpr (Chw32) sum += partial[g * across + (i ^ 1)];
      }
      shared_factors[i] = normalizer.factor<T>(sum);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < S; ++i) factors[i] = shared_factors[tx * S + i];
  }

#pragma unroll
  for (int j = 0; j < R; ++j) {
    const int row = ty + j * height;
    tile[j].forget();
    if (active && row < columns.reduced) {
      T* to = y + base + row * columns.inner;
      if constexpr (Chw32)
        tile[j].times(factors[0]).first(valid_channels(row)).store_streaming(to);
      else
        tile[j].times(factors).store_streaming(to);
    }
  }
}

}  // namespace detail

/// Tuned on an H200. A thread holds few rows of a small tensor or short vectors, many of others.
struct ColumnsPolicy {
  template <class T>
  static constexpr int threads = sizeof(T) == 1 ? 256 : 512;
  static constexpr int many_rows = 8;
  static constexpr int few_rows = 4;
  static constexpr int most_threads = 1024;  ///< For long vectors.
  static constexpr int narrowest = 4;  ///< Threads side by side: 64 bytes of a row where elements are read in vectors.
};

/// The longest vector.
inline constexpr int columns_capacity = ColumnsPolicy::most_threads / ColumnsPolicy::narrowest * 8;

template <class T, int N, bool Chw32 = false>
[[nodiscard]] Status run_columns(const T* x, T* y, const Columns& columns, const Normalizer& normalizer,
                                 const CudaContext& context) {
  using namespace detail;
  using Policy = ColumnsPolicy;
  constexpr int threads = Policy::threads<T>;
  DeviceTraits device;
  if (Status status = current_device(device); !status.ok()) return status;
  const std::int64_t vectors = columns.outer * (columns.inner / N);
  const auto run = [&](auto kernel, int rows, int threads) {
    int width = threads;
    while (width > 1 && threads / width * rows < columns.reduced) width /= 2;
    int log2_width = 0;
    while (1 << log2_width < width) ++log2_width;
    return launch("L2Normalize columns", kernel, ceil_divide(vectors, width), threads, context, x, y, columns,
                  log2_width, normalizer);
  };
  const bool fills =
      vectors * columns.reduced >= std::int64_t{2} * device.multiprocessors * device.threads_per_multiprocessor;
  constexpr int short_vector = 4;
  constexpr int widths = 8;  // threads side by side that still read whole sectors of memory
  if (columns.reduced <= short_vector || (!fills && columns.reduced <= 256 / widths * Policy::few_rows)) {
    return run(columns_in_registers<T, N, Policy::few_rows, 256, Chw32>, Policy::few_rows, 256);
  }
  if (columns.reduced <= threads / widths * Policy::many_rows) {
    return run(columns_in_registers<T, N, Policy::many_rows, threads, Chw32>, Policy::many_rows, threads);
  }
  return run(columns_in_registers<T, N, 8, Policy::most_threads, Chw32>, 8, Policy::most_threads);
}

}  // namespace graft

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

inline constexpr int columns_threads = 256;

/// A block is 1 << log2_width threads wide along the columns and as high as its threads reach; thread (tx, ty) holds
/// the rows ty, ty + height, ... of N neighbouring columns. Chw32: N = 16 neighbours are half a pixel's vector of 32
/// channels, so they and the next thread's are summed as well.
template <class T, int N, int R, bool Chw32>
__global__ void __launch_bounds__(columns_threads)
    columns_in_registers(const T* x, T* y, Columns columns, int log2_width, Normalizer normalizer) {
  constexpr int S = Chw32 ? 1 : N;  // sums a thread keeps
  const int width = 1 << log2_width;
  const int height = columns_threads >> log2_width;
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
#pragma unroll
  for (int j = 0; j < R; ++j) {
    if constexpr (Chw32) {
      tile[j] = tile[j].first(valid_channels(ty + j * height));
      sums[0] += tile[j].sum_of_squares();
    } else {
      float values[N];
      tile[j].unpack(values);
#pragma unroll
      for (int i = 0; i < N; ++i) sums[i] += values[i] * values[i];
    }
  }

  float factors[S];
  if (height == 1) {
    if constexpr (Chw32) sums[0] += __shfl_xor_sync(0xFFFFFFFFU, sums[0], 1);
#pragma unroll
    for (int i = 0; i < S; ++i) factors[i] = normalizer.factor<T>(sums[i]);
  } else {
    __shared__ float partial[columns_threads * S];  // a row for each warp, or for each ty where it is wider
    __shared__ float shared_factors[columns_threads / 2 * S];
    for (int distance = 16; distance >= width; distance /= 2) {
#pragma unroll
      for (int i = 0; i < S; ++i) sums[i] += __shfl_xor_sync(0xFFFFFFFFU, sums[i], distance);
    }
    const int group = ::max(width, 32);
    const int groups = columns_threads / group;
    const int across = width * S;
    if ((static_cast<int>(threadIdx.x) & (group - 1)) < width) {
      float* mine = partial + static_cast<int>(threadIdx.x) / group * across + tx * S;
#pragma unroll
      for (int i = 0; i < S; ++i) mine[i] = sums[i];
    }
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < across; i += columns_threads) {
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
    if (active && row < columns.reduced) {
      T* to = y + base + row * columns.inner;
      if constexpr (Chw32)
        multiplied(tile[j], factors[0]).first(valid_channels(row)).store(to);
      else
        multiplied(tile[j], factors).store(to);
    }
  }
}

}  // namespace detail

/// Tuned on an H200.
struct ColumnsPolicy {
  static constexpr int many_rows = 16;  ///< A thread holds, where the tensor fills the GPU.
  static constexpr int few_rows = 4;
  static constexpr int narrowest = 4;  ///< Threads side by side: 64 bytes of a row where elements are read in vectors.
};

/// The longest vector.
inline constexpr int columns_capacity = detail::columns_threads / ColumnsPolicy::narrowest * ColumnsPolicy::many_rows;

template <class T, int N, bool Chw32 = false>
[[nodiscard]] Status run_columns(const T* x, T* y, const Columns& columns, const Normalizer& normalizer,
                                 const CudaContext& context) {
  using namespace detail;
  DeviceTraits device;
  if (Status status = current_device(device); !status.ok()) return status;
  const std::int64_t vectors = columns.outer * (columns.inner / N);
  const auto log2_height = [&](int rows) {
    int log2 = 0;
    while (rows << log2 < columns.reduced) ++log2;
    return log2;
  };
  const auto run = [&](auto kernel, int rows) {
    const int log2_width = 8 - log2_height(rows);
    static_assert(columns_threads == 1 << 8);
    return launch("L2Normalize columns", kernel, ceil_divide(vectors, std::int64_t{1} << log2_width), columns_threads,
                  context, x, y, columns, log2_width, normalizer);
  };
  const bool fills =
      vectors << log2_height(ColumnsPolicy::many_rows) >= std::int64_t{2} * device.multiprocessors * columns_threads;
  if (columns.reduced <= ColumnsPolicy::few_rows ||
      (!fills && columns.reduced <= ColumnsPolicy::few_rows * columns_threads / 8)) {
    return run(columns_in_registers<T, N, ColumnsPolicy::few_rows, Chw32>, ColumnsPolicy::few_rows);
  }
  return run(columns_in_registers<T, N, ColumnsPolicy::many_rows, Chw32>, ColumnsPolicy::many_rows);
}

}  // namespace graft

// Euclidean norms of vectors that are interleaved element by element (the channels of N,C,H,W): a block reads a tile of
// whole vectors once and keeps it in registers.
#pragma once

#include "kernels/cluster.cuh"
#include "kernels/launch.cuh"
#include "kernels/normalizer.cuh"
#include "kernels/strides.cuh"

namespace graft {

/// A row-major tensor of outer x reduced x inner elements.
struct Columns {
  std::int64_t outer;
  std::int64_t inner;
  int reduced;
  int channels = 0;  ///< The number of channels of chw32 that are not padding.
};

/// The sizes of blocks and the work per thread, tuned on an H100. The width of a block follows from its height, which
/// depends on the length of the vectors.
template <class T, int N>
struct ColumnsPolicy {
  static constexpr bool wide = Vector<T, N>::bytes == 16;
  /// Whether the elements are i8 in 128-bit vectors, whose sums need too many registers for large blocks.
  static constexpr bool wide_i8 = wide && sizeof(T) == 1;
  static constexpr int threads = 256;
  static constexpr int many_threads = wide_i8 ? 256 : 512;
  static constexpr int few_rows = 4;  ///< The vectors that a thread holds in registers in small tensors.
  static constexpr int rows = 8;      ///< The vectors that a thread holds in registers in other tensors.
  /// The number of vectors that a thread holds in registers for long columns and in large tensors.
  static constexpr int many_rows = wide ? 8 : 16;
  /// The narrowest width of a block, in threads.
  static constexpr int narrowest = (wide_i8 ? 128 : wide ? 64 : sizeof(T) == 1 ? 16 : 32) / Vector<T, N>::bytes;
  static constexpr int narrowest_of_many = (wide ? 128 : 32) / Vector<T, N>::bytes;
  static constexpr int large = 20;  ///< The minimum ratio of vectors to threads of the GPU in a large tensor.
};

namespace kernels {

inline constexpr int columns_cluster_width = 32;  // The width in threads of the widest block in a cluster.

/// Normalizes columns in registers. A block is 1 << log2_width threads wide along the columns, and as high as the
/// number of its threads allows. Thread (tx, ty) holds the rows ty, ty + height, ... of N adjacent columns. The rows of
/// a column continue from one block of a cluster to the next. With Chw32, N = 16 adjacent elements are half of the 32
/// channels of a pixel, so their squares are summed together with those of the adjacent thread.
template <class T, int N, int R, int Threads, bool Chw32, bool Clustered, bool Weighted>
__global__ void __launch_bounds__(Threads, 1024 / Threads)
    columns_in_registers(const T* x, T* y, Columns columns, int log2_width, Normalizer normalizer,
                         ChannelWeights given_weights) {
  if constexpr (Clustered && !compiles_clusters) return;
  const ChannelWeights weights = weights_of_kernel<Weighted>(given_weights);
  constexpr int S = Chw32 ? 1 : N;  // The number of sums that a thread keeps.
  BlockCluster<Clustered> cluster;
  const int width = 1 << log2_width;
  const int block_height = Threads >> log2_width;
  const int height = block_height * cluster.size();
  const int tx = static_cast<int>(threadIdx.x) & (width - 1);
  const int ty = cluster.rank() * block_height + (static_cast<int>(threadIdx.x) >> log2_width);
  const std::int64_t inner_vectors = columns.inner / N;
  const std::int64_t tile_index = cluster.index();
  const std::int64_t column = (tile_index << log2_width) + tx;
  const bool active = column < columns.outer * inner_vectors;
  const std::int64_t outer = columns.outer == 1 ? 0 : divide(column, inner_vectors);
  const std::int64_t base = outer * columns.reduced * columns.inner + (column - outer * inner_vectors) * N;
  const auto valid_channels = [&](int row) { return Chw32 ? columns.channels - row * 2 * N - (tx & 1) * N : N; };

  // Weights are loaded early if registers are free, because the loads do not depend on the sums.
  constexpr bool weights_early = !Chw32 && sizeof(T) > 1 && R <= 8;
  Vector<T, N> tile[R];
  float weight[weights_early ? R : 1];
#pragma unroll
  for (int j = 0; j < R; ++j) {
    const int row = ty + j * height;
    tile[j] =
        active && row < columns.reduced ? Vector<T, N>::load(x + base + row * columns.inner) : Vector<T, N>::zero();
    if constexpr (weights_early) weight[j] = row < columns.reduced ? weights.weight(row) : 0;
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
    __shared__ float partial[Threads * S];  // One row per warp, or one per ty if a ty is wider than a warp.
    __shared__ float totals[Threads / 2 * S];
    __shared__ float cluster_sums[Clustered ? max_cluster * columns_cluster_width * S : 1];
    for (int distance = 16; distance >= width; distance /= 2) {
#pragma unroll
      for (int i = 0; i < S; ++i) sums[i] += __shfl_xor_sync(0xFFFFFFFFU, sums[i], distance);
    }
    const int group = ::max(width, 32);
    const int groups = Threads / group;
    const int across = width * S;
    if ((static_cast<int>(threadIdx.x) & (group - 1)) < width) {
      float* mine = partial + static_cast<int>(threadIdx.x) / group * across + tx;
#pragma unroll
      for (int i = 0; i < S; ++i) mine[i * width] = sums[i];  // Adjacent threads use adjacent banks.
    }
    __syncthreads();
    if (cluster.size() > 1) cluster.begin_sending();
    for (int i = static_cast<int>(threadIdx.x); i < across; i += Threads) {
      float sum = 0;
#pragma unroll 8
      for (int g = 0; g < groups; ++g) {
        sum += partial[g * across + i];
        if constexpr (Chw32) sum += partial[g * across + (i ^ 1)];
      }
      if (cluster.size() > 1)
        cluster.send(cluster_sums, across, i, sum);
      else
        totals[i] = normalizer.factor<T>(sum);
    }
    if (cluster.size() > 1) {
      cluster.receive();
      for (int i = static_cast<int>(threadIdx.x); i < across; i += Threads) {
        float sum = 0;
        for (int other = 0; other < cluster.size(); ++other) sum += cluster_sums[other * across + i];
        totals[i] = normalizer.factor<T>(sum);
      }
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < S; ++i) factors[i] = totals[i * width + tx];
  }

#pragma unroll
  for (int j = 0; j < R; ++j) {
    const int row = ty + j * height;
    tile[j].forget();
    if (active && row < columns.reduced) {
      T* to = y + base + row * columns.inner;
      if constexpr (Chw32) {
        const Vector<T, N> result =
            weights.scale_run(tile[j], factors[0], row * 2 * N + (tx & 1) * N, columns.channels);
        result.first(valid_channels(row)).store_streaming(to);
      } else {
        const float own = weights_early ? weight[weights_early ? j : 0] : weights.weight(row);
        const Vector<T, N> result = weights.scale(tile[j], factors, own);
        // A store that fills only part of a sector must stay in the cache until the rest of the sector is stored.
        if constexpr (Vector<T, N>::bytes == 16)
          result.store_streaming(to);
        else
          result.store(to);
      }
    }
  }
}

}  // namespace kernels

/// The largest number of elements in a column that run_columns() supports. A column of this length always fits into a
/// cluster of blocks of the smallest useful width; without clusters, blocks become narrower.
template <class T, int N>
inline constexpr int columns_capacity =
    ColumnsPolicy<T, N>::threads / ColumnsPolicy<T, N>::narrowest* ColumnsPolicy<T, N>::many_rows* max_cluster;

template <class T, int N, bool Chw32 = false>
[[nodiscard]] Status run_columns(const char* what, const T* x, T* y, const Columns& columns,
                                 const Normalizer& normalizer, const ChannelWeights& weights,
                                 const DeviceTraits& device, const CudaContext& context) {
  using namespace kernels;
  using Policy = ColumnsPolicy<T, N>;
  const std::int64_t vectors = columns.outer * (columns.inner / N);
  // Returns the binary logarithm of the largest width for which a block is high enough for a column; 0 if no width is.
  const auto log2_width_of = [&](int rows, int threads, int cluster) {
    int log2_width = 0;
    while (2 << log2_width <= threads && (threads >> (log2_width + 1)) * rows * cluster >= columns.reduced &&
           (cluster == 1 || 2 << log2_width <= columns_cluster_width)) {
      ++log2_width;
    }
    return log2_width;
  };
  const auto run = [&]<int R, int Threads, bool Clustered>(int cluster) {
    int log2_width = log2_width_of(R, Threads, cluster);
    // In small tensors, blocks are narrower and higher, so that more multiprocessors get a block.
    while (1 << log2_width > Policy::narrowest && columns.reduced > Policy::few_rows &&
           (Threads >> log2_width) * cluster < columns.reduced &&
           2 * ceil_divide(vectors, std::int64_t{1} << log2_width) * cluster <= device.multiprocessors) {
      --log2_width;
    }
    const Grid grid{ceil_divide(vectors, std::int64_t{1} << log2_width) * cluster, Threads, cluster};
    return with_weighted(weights, [&]<bool Weighted>(std::bool_constant<Weighted>) {
      return launch(what, columns_in_registers<T, N, R, Threads, Chw32, Clustered, Weighted>, grid, context, x, y,
                    columns, log2_width, normalizer, weights);
    });
  };
  const auto fits = [&](int rows, int threads, int cluster, int narrowest) {
    const int width = 1 << log2_width_of(rows, threads, cluster);
    return width >= narrowest && threads / width * rows * cluster >= columns.reduced;
  };
  constexpr int threads = Policy::threads;
  constexpr int many_threads = Policy::many_threads;
  const std::int64_t held = std::int64_t{device.multiprocessors} * device.threads_per_multiprocessor;
  const std::int64_t all = vectors * columns.reduced;
  const bool small = all < 2 * held;
  const bool large = !Policy::wide && all >= Policy::large * held;
  if (columns.reduced <= Policy::few_rows ||
      (small && columns.reduced > Policy::rows && fits(Policy::few_rows, threads, 1, Policy::narrowest))) {
    return run.template operator()<Policy::few_rows, threads, false>(1);
  }
  const int narrowest = small ? Policy::narrowest : Policy::narrowest_of_many;
  if (columns.reduced <= Policy::rows || (!large && fits(Policy::rows, threads, 1, narrowest))) {
    return run.template operator()<Policy::rows, threads, false>(1);
  }
  if (!large && fits(Policy::rows, many_threads, 1, Policy::narrowest)) {
    return run.template operator()<Policy::rows, many_threads, false>(1);
  }
  if (!device.has_clusters() || (!small && fits(Policy::many_rows, many_threads, 1, Policy::narrowest))) {
    return run.template operator()<Policy::many_rows, many_threads, false>(1);
  }
  int cluster = 2;
  while (cluster < max_cluster && !fits(Policy::many_rows, threads, cluster, Policy::narrowest)) cluster *= 2;
  return run.template operator()<Policy::many_rows, threads, true>(cluster);
}

}  // namespace graft

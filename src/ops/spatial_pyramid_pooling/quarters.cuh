// SpatialPyramidPooling of levels 4, 2 and 1 on sizes that four divides: a warp reads a plane, or a quarter of its
// rows, and the bins of each level are reduced from those of the finer one.
#pragma once

#include <cstdint>

#include "kernels/cluster.cuh"
#include "kernels/divisor.cuh"
#include "kernels/launch.cuh"
#include "kernels/vector.cuh"
#include "ops/spatial_pyramid_pooling/reduction.cuh"
#include "ops/spatial_pyramid_pooling/spatial_pyramid_pooling.hpp"

namespace graft {
namespace detail {

/// Tuned on an H200.
struct QuartersPolicy {
  static constexpr int warps = 4;          ///< Of a block whose warps take a plane each.
  static constexpr int loads = 4;          ///< Of a thread at a time, where a block takes a plane.
  static constexpr int most_shares = 4;    ///< Warps that share a quarter of a plane's rows, in that case.
  static constexpr int enough_planes = 4;  ///< For each multiprocessor, from which on a warp may take one.
  static constexpr int cluster_threads = 512;
  static constexpr std::int64_t long_plane = 262144;  ///< Bytes from which on a cluster takes a plane.
};

struct QuartersPlan {
  const void* x = nullptr;
  void* y = nullptr;
  int planes = 0;
  int width = 0;
  int quarter = 0;            ///< Rows of a bin of level 4.
  int log2_column_lanes = 0;  ///< Vectors of a row.
  int bins = 0;               ///< Of a channel.
  int channels = 0;
  int first_bin[3] = {-1, -1, -1};  ///< Of levels 4, 2, 1; -1 for one that is not asked for.
  int cluster = 1;                  ///< Blocks that share a plane.
  Divisor by_row_vectors = {};      ///< By the vectors of a row of a bin of level 4.
  Divisor by_channels = {};
  float count = 0;  ///< Elements of a bin of level 4.
  float x_scale = 1;
  float y_scale = 1;
};

/// Of vectors that lie in one bin.
template <class T, class Reduce>
class BinSum : public Columns<T, Reduce, widest<T>> {};
template <>
class BinSum<std::int8_t, Average> {
 public:
  __device__ void add(const Vector<std::int8_t, 16>& vector) {
#pragma unroll
    for (int w = 0; w < 4; ++w) sum_ = __dp4a(static_cast<int>(vector.word(w)), 0x01010101, sum_);
  }
  [[nodiscard]] __device__ float total() const { return static_cast<float>(sum_); }

 private:
  int sum_ = 0;
};

/// From the bins of level 4, row after row, to y; by a whole warp.
template <class T, class Reduce>
__device__ void store_levels(const QuartersPlan& plan, int plane, const float* fourths) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const float* corner = fourths + (lane & 2) * 4 + (lane & 1) * 2;
  const float half = Reduce::apply(Reduce::apply(corner[0], corner[1]), Reduce::apply(corner[4], corner[5]));
  float value = half;
#pragma unroll
  for (int distance = 1; distance < 4; distance *= 2) {
    value = Reduce::apply(value, __shfl_xor_sync(0xFFFFFFFFU, value, distance));
  }
  // Lanes 0 to 15 have an output of level 4, 16 to 19 of level 2, 20 of level 1.
  const int level = lane < 16 ? 0 : lane < 20 ? 1 : 2;
  if (level == 0) value = fourths[lane];
  if (level == 1) value = half;
  const int first_bin = level == 0 ? plan.first_bin[0] : level == 1 ? plan.first_bin[1] : plan.first_bin[2];
  if (lane > 20 || first_bin < 0) return;
  const int index = level == 0 ? lane : level == 1 ? lane - 16 : 0;
  const int item = plan.by_channels.quotient(plane);
  const int channel = plane - item * plan.channels;
  const std::int64_t at = (std::int64_t{item} * plan.bins + first_bin) * plan.channels +
                          (std::int64_t{channel} * 16 >> (2 * level)) + index;
  value = Reduce::finish(value, plan.count * static_cast<float>(1 << (2 * level)));
  static_cast<T*>(plan.y)[at] = to_output<T>(value, plan.x_scale, plan.y_scale);
}

/// The lanes of a warp that lies over rows of at most 32 vectors.
class QuarterLanes {
 public:
  __device__ explicit QuarterLanes(int log2_columns) : log2_columns_(log2_columns) {}
  [[nodiscard]] __device__ int rows() const { return 32 >> log2_columns_; }
  [[nodiscard]] __device__ int row() const { return lane() >> log2_columns_; }
  [[nodiscard]] __device__ int column() const { return lane() & (columns() - 1); }

  /// Values of all lanes that have the same column of bins, to one for each of the four columns.
  template <class Reduce>
  __device__ void reduce(float value, float* fourths) const {
    for (int distance = columns(); distance < 32; distance *= 2) {
      value = Reduce::apply(value, __shfl_xor_sync(0xFFFFFFFFU, value, distance));
    }
    for (int distance = 1; distance < columns() / 4; distance *= 2) {
      value = Reduce::apply(value, __shfl_xor_sync(0xFFFFFFFFU, value, distance));
    }
    const int bin = lane() >> (log2_columns_ - 2);
    if (bin < 4 && bin << (log2_columns_ - 2) == lane()) fourths[bin] = value;
  }

 private:
  [[nodiscard]] static __device__ int lane() { return static_cast<int>(threadIdx.x) % 32; }
  [[nodiscard]] __device__ int columns() const { return 1 << log2_columns_; }
  int log2_columns_;
};

/// A warp to a plane. K: loads of a lane in each quarter of the rows.
template <class T, class Reduce, int K>
__global__ void __launch_bounds__(QuartersPolicy::warps * 32, 8)  // a thread may have 64 registers
    pool_short_quarters(const __grid_constant__ QuartersPlan plan) {
  constexpr int N = widest<T>;
  __shared__ float shared[QuartersPolicy::warps][16];
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int plane = static_cast<int>(blockIdx.x) * QuartersPolicy::warps + warp;
  if (plane >= plan.planes) return;
  const QuarterLanes lanes(plan.log2_column_lanes);
  const int stride = lanes.rows() * plan.width;
  const int quarter_size = plan.quarter * plan.width;
  const T* from = static_cast<const T*>(plan.x) + std::int64_t{plane} * 4 * quarter_size + lanes.row() * plan.width +
                  lanes.column() * N;
  Vector<T, N> loads[4][K];
#pragma unroll
  for (int q = 0; q < 4; ++q) {
#pragma unroll
    for (int k = 0; k < K; ++k) loads[q][k] = Vector<T, N>::load(from + q * quarter_size + k * stride);
  }
  float values[4];
#pragma unroll
  for (int q = 0; q < 4; ++q) {
    BinSum<T, Reduce> sum;
#pragma unroll
    for (int k = 0; k < K; ++k) sum.add(loads[q][k]);
    values[q] = sum.total();
  }
#pragma unroll
  for (int q = 0; q < 4; ++q) lanes.reduce<Reduce>(values[q], shared[warp] + 4 * q);
  __syncwarp();
  store_levels<T, Reduce>(plan, plane, shared[warp]);
}

/// A block to a plane, the same number of its warps to each quarter of the rows.
template <class T, class Reduce>
__global__ void __launch_bounds__(QuartersPolicy::most_shares * 128)
    pool_quarters(const __grid_constant__ QuartersPlan plan) {
  constexpr int N = widest<T>;
  constexpr int K = QuartersPolicy::loads;
  __shared__ float shared[QuartersPolicy::most_shares][16];
  const int plane = static_cast<int>(blockIdx.x);
  const int quarter = static_cast<int>(threadIdx.x) / 32 % 4;
  const int share = static_cast<int>(threadIdx.x) / 128;
  const int shares = static_cast<int>(blockDim.x) / 128;
  const QuarterLanes lanes(plan.log2_column_lanes);
  const int rows = lanes.rows() * shares;
  const int stride = rows * plan.width;
  const int first = share * lanes.rows() + lanes.row();
  const T* from = static_cast<const T*>(plan.x) +
                  ((std::int64_t{plane} * 4 + quarter) * plan.quarter + first) * plan.width + lanes.column() * N;
  BinSum<T, Reduce> sum;
  for (int row = first; row < plan.quarter; row += K * rows) {
    Vector<T, N> loads[K];
#pragma unroll
    for (int k = 0; k < K; ++k) {
      if (row + k * rows < plan.quarter) loads[k] = Vector<T, N>::load(from + k * stride);
    }
#pragma unroll
    for (int k = 0; k < K; ++k) {
      if (row + k * rows < plan.quarter) sum.add(loads[k]);
    }
    from += K * stride;
  }
  lanes.reduce<Reduce>(sum.total(), shared[share] + 4 * quarter);
  __syncthreads();
  if (threadIdx.x >= 32) return;
  if (shares > 1) {
    if (threadIdx.x < 16) {
      float value = shared[0][threadIdx.x];
      for (int other = 1; other < shares; ++other) value = Reduce::apply(value, shared[other][threadIdx.x]);
      shared[0][threadIdx.x] = value;
    }
    __syncwarp();
  }
  store_levels<T, Reduce>(plan, plane, shared[0]);
}

/// Long planes: each of the blocks of a cluster takes two bins of level 4, side by side, half of its threads to each.
template <class T, class Reduce>
__global__ void __launch_bounds__(QuartersPolicy::cluster_threads)
    pool_long_quarters(const __grid_constant__ QuartersPlan plan) {
  constexpr int N = widest<T>;
  constexpr int K = 8;                                          // loads at a time
  constexpr int threads = QuartersPolicy::cluster_threads / 2;  // to a bin
  BlockCluster<true> cluster;
  const int plane = static_cast<int>(cluster.index());
  const int thread = static_cast<int>(threadIdx.x) % threads;
  const int bin = 2 * cluster.rank() + static_cast<int>(threadIdx.x) / threads;
  const T* from = static_cast<const T*>(plan.x) + (std::int64_t{plane} * 4 + bin / 4) * plan.quarter * plan.width +
                  bin % 4 * (plan.width / 4);
  const int row_vectors = plan.width / (4 * N);
  const int vectors = plan.quarter * row_vectors;
  BinSum<T, Reduce> sum;
  for (int first = thread; first < vectors; first += K * threads) {
    Vector<T, N> loads[K];
#pragma unroll
    for (int k = 0; k < K; ++k) {
      const int vector = first + k * threads;
      const int row = plan.by_row_vectors.quotient(vector);
      if (vector < vectors) {
        loads[k] = Vector<T, N>::load(from + std::int64_t{row} * plan.width + (vector - row * row_vectors) * N);
      }
    }
#pragma unroll
    for (int k = 0; k < K; ++k) {
      if (first + k * threads < vectors) sum.add(loads[k]);
    }
  }
  __shared__ float partials[2][threads / 32];
  __shared__ float fourths[16];
  const float of_warp = reduce_lanes<Reduce>(sum.total(), 5);
  if (threadIdx.x % 32 == 0) partials[threadIdx.x / threads][thread / 32] = of_warp;
  __syncthreads();
  cluster.begin_sending();
  if (threadIdx.x < 2) {
    float value = partials[threadIdx.x][0];
    for (int warp = 1; warp < threads / 32; ++warp) value = Reduce::apply(value, partials[threadIdx.x][warp]);
    cluster.send(fourths, 2, static_cast<int>(threadIdx.x), value);
  }
  cluster.receive();
  if (cluster.rank() == 0 && threadIdx.x < 32) store_levels<T, Reduce>(plan, plane, fourths);
}

/// What kernels take of the problem; false for one that is not theirs.
template <class T>
[[nodiscard]] bool make_quarters(const SpatialPyramidPooling& op, const Extents& extents, const DeviceTraits& device,
                                 QuartersPlan& plan) {
  const std::int64_t vectors = extents[3] / widest<T>;
  const std::int64_t bytes = extents[2] * extents[3] * static_cast<std::int64_t>(sizeof(T));
  if (extents[2] % 4 != 0 || extents[3] % (4 * widest<T>) != 0) return false;
  if (bytes >= QuartersPolicy::long_plane) {
    if (!device.has_clusters()) return false;
    plan.cluster = max_cluster;
  } else if (vectors > 32 || (vectors & (vectors - 1)) != 0) {
    return false;
  }
  for (const std::int64_t side : op.levels) {
    const int index = side == 4 ? 0 : side == 2 ? 1 : 2;
    if (side != 4 >> index || plan.first_bin[index] >= 0) return false;
    plan.first_bin[index] = plan.bins;
    plan.bins += static_cast<int>(side * side);
  }
  plan.planes = static_cast<int>(extents[0] * extents[1]);
  plan.width = static_cast<int>(extents[3]);
  plan.quarter = static_cast<int>(extents[2] / 4);
  while (1 << plan.log2_column_lanes < vectors) ++plan.log2_column_lanes;
  plan.channels = static_cast<int>(extents[1]);
  plan.by_channels = Divisor(plan.channels);
  plan.by_row_vectors = Divisor(static_cast<int>(vectors / 4));
  plan.count = static_cast<float>(extents[2] / 4 * (extents[3] / 4));
  plan.x_scale = op.x_scale;
  plan.y_scale = op.y_scale;
  return true;
}

}  // namespace detail

/// Of a plan that make_quarters made.
template <class T, class Reduce>
[[nodiscard]] Status run_quarters(detail::QuartersPlan plan, const T* x, T* y, const DeviceTraits& device,
                                  const CudaContext& context) {
  using namespace detail;
  plan.x = x;
  plan.y = y;
  if (plan.cluster > 1) {
    const Grid grid{std::int64_t{plan.planes} * plan.cluster, QuartersPolicy::cluster_threads, plan.cluster};
    return launch("SpatialPyramidPooling quarters", pool_long_quarters<T, Reduce>, grid, context, plan);
  }
  const int loads = static_cast<int>(ceil_divide(plan.quarter, 32 >> plan.log2_column_lanes));
  if (plan.planes >= device.multiprocessors * QuartersPolicy::enough_planes) {
    const Grid grid{ceil_divide(plan.planes, QuartersPolicy::warps), QuartersPolicy::warps * 32};
    const bool exact = plan.quarter << plan.log2_column_lanes == 32 * loads;
    if (exact && loads == 1) {
      return launch("SpatialPyramidPooling quarters", pool_short_quarters<T, Reduce, 1>, grid, context, plan);
    }
    if (exact && loads == 2) {
      return launch("SpatialPyramidPooling quarters", pool_short_quarters<T, Reduce, 2>, grid, context, plan);
    }
  }
  const int shares = std::clamp(loads / QuartersPolicy::loads, 1, QuartersPolicy::most_shares);
  const Grid grid{plan.planes, shares * 128};
  return launch("SpatialPyramidPooling quarters", pool_quarters<T, Reduce>, grid, context, plan);
}

}  // namespace graft

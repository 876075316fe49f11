// SpatialPyramidPooling of levels 4, 2 and 1 on sizes that are multiples of four. The bins of level 4 are reduced from
// the elements, the bins of each other level from the bins of the next finer level.
#pragma once

#include <cstdint>

#include "kernels/cluster.cuh"
#include "kernels/divisor.cuh"
#include "kernels/launch.cuh"
#include "kernels/quantizer.cuh"
#include "kernels/vector.cuh"
#include "ops/spatial_pyramid_pooling/reduction.cuh"
#include "ops/spatial_pyramid_pooling/spatial_pyramid_pooling.hpp"

namespace graft::ops {
namespace detail {

/// The sizes of blocks and the work per thread, tuned on an H200.
struct NestedLevelsPolicy {
  static constexpr int warps = 4;  ///< The number of warps in a block in which each warp pools a plane.
  /// The number of loads that a thread issues before it uses the first one, if a block or a cluster pools a plane.
  static constexpr int loads = 4;
  /// The maximum number of warps that share a quarter of the rows if a block pools a plane.
  static constexpr int most_shares = 4;
  /// The minimum number of planes per multiprocessor with which each warp pools a plane of its own (kernel `rows`).
  /// With so many planes, make_nested_levels() returns `none` if the planes are not suitable for `rows`.
  static constexpr int enough_planes = 4;
  static constexpr int bin_threads = 512;  ///< The number of threads in a block that are divided equally between bins.
  static constexpr int bin_loads = 8;      ///< The number of these loads in a block of bin_threads without a cluster.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  /// The number of blocks that must fit on a multiprocessor at the same time. With two, which is all that the 32
  /// clusters of an input of 2x16x1024x1024 need, two of the clusters would have to wait for the others.
  static constexpr int cluster_blocks = 3;
#else
  static constexpr int cluster_blocks = 1;  // 1 stands for no clusters
#endif
  static constexpr std::int64_t long_plane = 262144;  ///< The size in bytes from which a cluster pools a plane.
};

struct NestedLevelsPlan {
  const void* x = nullptr;
  void* y = nullptr;
  int planes = 0;
  int width = 0;
  int quarter = 0;            ///< The number of rows in a bin of level 4.
  int log2_column_lanes = 0;  ///< The binary logarithm of the number of vectors in a row.
  int bins = 0;               ///< The number of bins of all levels in one channel.
  int channels = 0;
  int first_bin[3] = {-1, -1, -1};  ///< The first bin of levels 4, 2 and 1; -1 for a level that is not requested.
  Divisor by_row_vectors = {};      ///< The divisor is the number of vectors in a row of a bin of level 4.
  Divisor by_channels = {};
  float count = 0;  ///< The number of elements in a bin of level 4.
  float x_scale = 1;
  Quantizer quantizer = {};
};

/// Reduces vectors all of whose elements lie in one bin.
template <class T, int N, class Reduce>
class BinSum : public Columns<T, Reduce, N> {};
template <int N>
requires(N > 1) class BinSum<std::int8_t, N, Average> {
 public:
  __device__ void add(const Vector<std::int8_t, N>& vector) {
#pragma unroll
    for (int w = 0; w < N / 4; ++w) sum_ = __dp4a(static_cast<int>(vector.word(w)), 0x01010101, sum_);
  }
  [[nodiscard]] __device__ float total() const { return static_cast<float>(sum_); }

 private:
  int sum_ = 0;
};

/// The output that one lane computes in the warp that completes a plane: lanes 0 to 15 write the bins of level 4, lanes
/// 16 to 19 the bins of level 2, lane 20 the bin of level 1. It may be constructed before the plane has been loaded,
/// while the warp waits.
template <class T, class Reduce>
class LevelOutput {
 public:
  __device__ LevelOutput(const NestedLevelsPlan& plan, int plane) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    level_ = lane < 16 ? 0 : lane < 20 ? 1 : 2;
    const int first_bin = level_ == 0 ? plan.first_bin[0] : level_ == 1 ? plan.first_bin[1] : plan.first_bin[2];
    if (lane > 20 || first_bin < 0) return;
    const int index = level_ == 0 ? lane : level_ == 1 ? lane - 16 : 0;
    const int item = plan.by_channels.quotient(plane);
    const int channel = plane - item * plan.channels;
    to_ = static_cast<T*>(plan.y) + (std::int64_t{item} * plan.bins + first_bin) * plan.channels +
          (std::int64_t{channel} * 16 >> (2 * level_)) + index;
  }

  /// Computes and stores the output of the lane. `fourths` contains the reduced bins of level 4, row by row.
  __device__ void store(const NestedLevelsPlan& plan, const float* fourths) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const float* corner = fourths + (lane & 2) * 4 + (lane & 1) * 2;
    const float half = Reduce::apply(Reduce::apply(corner[0], corner[1]), Reduce::apply(corner[4], corner[5]));
    float value = half;
#pragma unroll
    for (int distance = 1; distance < 4; distance *= 2) {
      value = Reduce::apply(value, __shfl_xor_sync(0xFFFFFFFFU, value, distance));
    }
    if (to_ == nullptr) return;
    if (level_ == 0) value = fourths[lane];
    if (level_ == 1) value = half;
    value = Reduce::finish(value, plan.count * static_cast<float>(1 << (2 * level_)));
    *to_ = to_output<T>(value, plan.x_scale, plan.quantizer);
  }

 private:
  int level_;
  T* to_ = nullptr;
};

/// The arrangement of the lanes of a warp that loads rows of at most 32 vectors: a row of lanes for each row.
class QuarterLanes {
 public:
  __device__ explicit QuarterLanes(int log2_columns) : log2_columns_(log2_columns) {}
  [[nodiscard]] __device__ int rows() const { return 32 >> log2_columns_; }
  [[nodiscard]] __device__ int row() const { return lane() >> log2_columns_; }
  [[nodiscard]] __device__ int column() const { return lane() & (columns() - 1); }

  /// Reduces the values of all lanes to one value for each of the four columns of bins, and stores these in `fourths`.
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

/// Pools one plane per warp. K is the number of loads of a lane in each quarter of the rows.
template <class T, class Reduce, int K>
__global__ void __launch_bounds__(NestedLevelsPolicy::warps * 32, 8)  // a thread may have 64 registers
    pool_short_nested_levels(const __grid_constant__ NestedLevelsPlan plan) {
  constexpr int N = widest<T>;
  __shared__ float shared[NestedLevelsPolicy::warps][16];
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int plane = static_cast<int>(blockIdx.x) * NestedLevelsPolicy::warps + warp;
  if (plane >= plan.planes) return;
  const LevelOutput<T, Reduce> output(plan, plane);
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
    BinSum<T, N, Reduce> sum;
#pragma unroll
    for (int k = 0; k < K; ++k) sum.add(loads[q][k]);
    values[q] = sum.total();
  }
#pragma unroll
  for (int q = 0; q < 4; ++q) lanes.reduce<Reduce>(values[q], shared[warp] + 4 * q);
  __syncwarp();
  output.store(plan, shared[warp]);
}

/// Pools one plane per block, with the same number of warps for each quarter of the rows.
template <class T, class Reduce>
__global__ void __launch_bounds__(NestedLevelsPolicy::most_shares * 128)
    pool_nested_levels(const __grid_constant__ NestedLevelsPlan plan) {
  constexpr int N = widest<T>;
  constexpr int K = NestedLevelsPolicy::loads;
  __shared__ float shared[NestedLevelsPolicy::most_shares][16];
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
  BinSum<T, N, Reduce> sum;
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
  LevelOutput<T, Reduce>(plan, plane).store(plan, shared[0]);
}

/// Pools one plane with equally many threads for each bin of level 4. A block pools all 16 bins, or each block of a
/// cluster of eight pools two.
template <class T, int N, class Reduce, bool Cluster>
__global__ void __launch_bounds__(NestedLevelsPolicy::bin_threads, Cluster ? NestedLevelsPolicy::cluster_blocks : 1)
    pool_quarter_bins(const __grid_constant__ NestedLevelsPlan plan) {
  if constexpr (Cluster && !compiles_clusters) return;
  constexpr int K = Cluster ? NestedLevelsPolicy::loads : NestedLevelsPolicy::bin_loads;
  constexpr int bins = Cluster ? 16 / max_cluster : 16;  // the number of bins of a block
  constexpr int threads = NestedLevelsPolicy::bin_threads / bins;
  __shared__ float partials[bins][threads / 32];
  __shared__ float fourths[16];
  BlockCluster<Cluster> cluster;
  const int plane = static_cast<int>(cluster.index());
  const LevelOutput<T, Reduce> output(plan, plane);
  const int thread = static_cast<int>(threadIdx.x) % threads;
  const int bin = bins * cluster.rank() + static_cast<int>(threadIdx.x) / threads;
  const T* from = static_cast<const T*>(plan.x) + (std::int64_t{plane} * 4 + bin / 4) * plan.quarter * plan.width +
                  bin % 4 * (plan.width / 4);
  const int row_vectors = plan.width / (4 * N);
  const int vectors = plan.quarter * row_vectors;
  BinSum<T, N, Reduce> sum;
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
  const float of_warp = reduce_lanes<Reduce>(sum.total(), 5);
  if constexpr (Cluster) {
    if (threadIdx.x % 32 == 0) partials[threadIdx.x / threads][thread / 32] = of_warp;
    __syncthreads();
    cluster.begin_sending();
    if (threadIdx.x < bins) {
      float value = partials[threadIdx.x][0];
      for (int warp = 1; warp < threads / 32; ++warp) value = Reduce::apply(value, partials[threadIdx.x][warp]);
      cluster.send(fourths, bins, static_cast<int>(threadIdx.x), value);
    }
    cluster.receive();
  } else {
    if (threadIdx.x % 32 == 0) fourths[bin] = of_warp;
    __syncthreads();
  }
  if (cluster.rank() == 0 && threadIdx.x < 32) output.store(plan, fourths);
}

/// The kernel for a problem: `rows` pools planes whose rows have a power of two of vectors, at most 32; `bins` and
/// `elements` pool bin by bin, in words or in single elements; `cluster` pools long planes; `none` if these kernels do
/// not support or do not suit the problem.
enum class NestedLevels : std::uint8_t { none, rows, bins, elements, cluster };

/// Returns the kernel for a problem, or `none`, and sets the members of the plan except the addresses.
template <class T>
[[nodiscard]] NestedLevels make_nested_levels(const SpatialPyramidPooling& op, const Extents& extents,
                                              const DeviceTraits& device, NestedLevelsPlan& plan) {
  if (extents[2] % 4 != 0 || extents[3] % 4 != 0) return NestedLevels::none;
  for (const std::int64_t side : op.levels) {
    const int index = side == 4 ? 0 : side == 2 ? 1 : 2;
    if (side != 4 >> index || plan.first_bin[index] >= 0) return NestedLevels::none;
    plan.first_bin[index] = plan.bins;
    plan.bins += static_cast<int>(side * side);
  }
  plan.planes = static_cast<int>(extents[0] * extents[1]);
  plan.width = static_cast<int>(extents[3]);
  plan.quarter = static_cast<int>(extents[2] / 4);
  plan.channels = static_cast<int>(extents[1]);
  plan.by_channels = Divisor(plan.channels);
  plan.count = static_cast<float>(plan.quarter) * static_cast<float>(plan.width / 4);
  plan.x_scale = op.x_scale;
  plan.quantizer = Quantizer(op.y_scale);

  const int bin_width = plan.width / 4;
  const auto in_vectors = [&](int elements) {
    if (bin_width % elements != 0) return false;
    plan.by_row_vectors = Divisor(bin_width / elements);
    return true;
  };
  const bool is_long = extents[2] * extents[3] * static_cast<std::int64_t>(sizeof(T)) >= NestedLevelsPolicy::long_plane;
  if (in_vectors(widest<T>)) {
    if (is_long) return device.has_clusters() ? NestedLevels::cluster : NestedLevels::none;
    const int vectors = plan.width / widest<T>;
    while (1 << plan.log2_column_lanes < vectors) ++plan.log2_column_lanes;
    if (vectors == 1 << plan.log2_column_lanes && vectors <= 32) return NestedLevels::rows;
  }
  if (is_long || plan.planes >= device.multiprocessors * NestedLevelsPolicy::enough_planes) return NestedLevels::none;
  if (in_vectors(4 / static_cast<int>(sizeof(T)))) return NestedLevels::bins;
  static_cast<void>(in_vectors(1));
  return NestedLevels::elements;
}

}  // namespace detail

/// Runs the kernel that make_nested_levels() has returned, with its plan.
template <class T, class Reduce>
[[nodiscard]] Status run_nested_levels(detail::NestedLevels kind, detail::NestedLevelsPlan plan, const T* x, T* y,
                                       const DeviceTraits& device, const CudaContext& context) {
  using namespace detail;
  plan.x = x;
  plan.y = y;
  const auto start = [&](auto kernel, const Grid& grid) {
    return launch("SpatialPyramidPooling nested_levels", kernel, grid, context, plan);
  };
  if (kind == NestedLevels::cluster) {
    const Grid grid{std::int64_t{plan.planes} * max_cluster, NestedLevelsPolicy::bin_threads, max_cluster};
    return start(pool_quarter_bins<T, widest<T>, Reduce, true>, grid);
  }
  if (kind == NestedLevels::bins || kind == NestedLevels::elements) {
    const Grid grid{plan.planes, NestedLevelsPolicy::bin_threads};
    constexpr int word = 4 / static_cast<int>(sizeof(T));
    if (kind == NestedLevels::bins) return start(pool_quarter_bins<T, word, Reduce, false>, grid);
    return start(pool_quarter_bins<T, 1, Reduce, false>, grid);
  }
  const int loads = static_cast<int>(ceil_divide(plan.quarter, 32 >> plan.log2_column_lanes));
  if (plan.planes >= device.multiprocessors * NestedLevelsPolicy::enough_planes) {
    const Grid grid{ceil_divide(plan.planes, NestedLevelsPolicy::warps), NestedLevelsPolicy::warps * 32};
    const bool exact = plan.quarter << plan.log2_column_lanes == 32 * loads;
    if (exact && loads == 1) return start(pool_short_nested_levels<T, Reduce, 1>, grid);
    if (exact && loads == 2) return start(pool_short_nested_levels<T, Reduce, 2>, grid);
  }
  const int shares = std::clamp(loads / NestedLevelsPolicy::loads, 1, NestedLevelsPolicy::most_shares);
  return start(pool_nested_levels<T, Reduce>, Grid{plan.planes, shares * 128});
}

}  // namespace graft::ops

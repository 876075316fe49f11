// Euclidean norms over the channels of small planes (7x7) whose size is no multiple of a vector: an item's elements lie
// in one piece and are read as such, whatever plane they belong to.
#pragma once

#include "kernels/cluster.cuh"
#include "kernels/launch.cuh"
#include "kernels/norm_columns.cuh"
#include "kernels/normalizer.cuh"

namespace graft {

/// Tuned on an H200.
struct PlanesPolicy {
  static constexpr int rows = 8;  ///< Vectors that a thread holds.
  static constexpr int most_threads = 1024;
  static constexpr int least_share = 512;  ///< Vectors of an item that are worth a block of a cluster.
};

namespace detail {

/// A cluster to an item. The block is a multiple of a plane's size, so that all vectors of a thread begin at the same
/// place of a plane and each thread sums N places.
template <class T, int N, int R, bool Clustered, class Weights>
__global__ void __launch_bounds__(PlanesPolicy::most_threads)
    planes_in_registers(const T* x, T* y, Columns columns, Normalizer normalizer, Weights weights) {
  extern __shared__ float shared[];
  BlockCluster<Clustered> cluster;
  const int threads = static_cast<int>(blockDim.x);
  const int thread = static_cast<int>(threadIdx.x);
  const int plane = static_cast<int>(columns.inner);
  float* const sums_of_threads = shared;
  float* const folded = sums_of_threads + threads * N;
  float* const totals = folded + threads;
  float* const of_blocks = totals + plane;
  const int length = columns.reduced * plane;
  const int first = (cluster.rank() * threads + thread) * N;
  const int step = cluster.size() * threads * N;
  const std::int64_t base = static_cast<std::int64_t>(cluster.index()) * length;

  Vector<T, N> tile[R];
#pragma unroll
  for (int j = 0; j < R; ++j) {
    const int at = first + j * step;
    tile[j] = at < length ? Vector<T, N>::load(x + base + at) : Vector<T, N>::zero();
  }
  float sums[N] = {};
  add_squares(tile, sums);
#pragma unroll
  for (int i = 0; i < N; ++i) sums_of_threads[thread * N + i] = sums[i];
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (int i = 0; i < N; ++i) sum += sums_of_threads[thread + i * threads];
  folded[thread] = sum;
  __syncthreads();
  if (cluster.size() > 1) cluster.begin_sending();
  if (thread < plane) {
    sum = 0;
    for (int i = thread; i < threads; i += plane) sum += folded[i];
    if (cluster.size() > 1)
      cluster.send(of_blocks, plane, thread, sum);
    else
      totals[thread] = normalizer.factor<T>(sum);
  }
  if (cluster.size() > 1) {
    cluster.receive();
    if (thread < plane) {
      sum = 0;
      for (int other = 0; other < cluster.size(); ++other) sum += of_blocks[other * plane + thread];
      totals[thread] = normalizer.factor<T>(sum);
    }
  }
  __syncthreads();

  const int place = thread * N % plane;
  float factors[N];
  for (int i = 0, at = place; i < N; ++i) {
    factors[i] = totals[at];
    at = at + 1 == plane ? 0 : at + 1;
  }
#pragma unroll
  for (int j = 0; j < R; ++j) {
    tile[j].forget();
    const int at = first + j * step;
    if (at < length) weights.scale_planes(tile[j], factors, at, plane).store(y + base + at);
  }
}

}  // namespace detail

/// Of smaller planes one thread would add many others' sums.
inline constexpr int planes_smallest = 32;
inline constexpr int planes_largest = PlanesPolicy::most_threads;

/// The largest item that so many blocks hold, in vectors.
[[nodiscard]] constexpr std::int64_t planes_capacity(std::int64_t plane, int blocks) {
  return planes_largest / plane * plane * PlanesPolicy::rows * blocks;
}

/// What run_planes asks for with vectors of `width`; its shared memory may be more than the device has.
[[nodiscard]] inline Grid planes_grid(const Columns& columns, int width, const DeviceTraits& device) {
  const std::int64_t length = columns.reduced * columns.inner;
  int cluster = 1;
  while (device.has_clusters() && cluster < max_cluster &&
         (length > planes_capacity(columns.inner, cluster) * width ||
          (columns.outer * cluster < device.multiprocessors &&
           length > std::int64_t{PlanesPolicy::least_share} * width * cluster))) {
    cluster *= 2;
  }
  const auto plane = static_cast<int>(columns.inner);
  const std::int64_t of_plane = std::int64_t{width} * PlanesPolicy::rows * cluster;
  const auto threads = static_cast<int>(ceil_divide(length, plane * of_plane)) * plane;
  return {.blocks = columns.outer * cluster,
          .threads = threads,
          .cluster = cluster,
          .shared_bytes = static_cast<int>((threads * (width + 1) + plane * (1 + max_cluster)) * sizeof(float))};
}

template <class T, int N, class Weights>
[[nodiscard]] Status run_planes(const char* what, const T* x, T* y, const Columns& columns,
                                const Normalizer& normalizer, const Weights& weights, const DeviceTraits& device,
                                const CudaContext& context) {
  using namespace detail;
  constexpr int rows = PlanesPolicy::rows;
  const Grid grid = planes_grid(columns, N, device);
  auto* kernel = grid.cluster > 1 ? planes_in_registers<T, N, rows, true, Weights>
                                  : planes_in_registers<T, N, rows, false, Weights>;
  return launch(what, kernel, grid, context, x, y, columns, normalizer, weights);
}

}  // namespace graft

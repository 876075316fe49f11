// SpatialPyramidPooling in one pass: a block takes whole planes, or a part of each row of cells of one plane. Threads
// go down columns, lanes then reduce columns to cells, and cells to bins.
#pragma once

#include <cstdint>

#include "kernels/divisor.cuh"
#include "kernels/launch.cuh"
#include "kernels/vector.cuh"
#include "ops/spatial_pyramid_pooling/pyramid.cuh"

namespace graft {
namespace detail {

/// Tuned on an H200.
struct PlanesPolicy {
  static constexpr int most_threads = 256;
  static constexpr int rows_in_flight = 4;  ///< Loads of a thread at a time.
  /// Of all blocks on a multiprocessor, from which on a block has fewer threads instead: the steps of a small block
  /// leave others the time to load.
  static constexpr std::int64_t enough_threads = 1024;
  static constexpr int least_threads = 64;
  static constexpr std::int64_t short_plane = 256;  ///< Accesses up to which twice as many threads take several planes.
  static constexpr int most_shared = 46 * 1024;     ///< Besides the pyramid.
  static constexpr std::int64_t long_plane = 65536;  ///< Bytes from which on several blocks may share one.
};

struct Maximum {
  [[nodiscard]] static __device__ float identity() { return -INFINITY; }
  [[nodiscard]] static __device__ float apply(float a, float b) {
#if __CUDA_ARCH__ >= 800
    float result;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
#else
    return a != a || a > b ? a : b;
#endif
  }
  [[nodiscard]] static __device__ float finish(float value, float /*count*/) { return value; }
};

struct Average {
  [[nodiscard]] static __device__ float identity() { return 0; }
  [[nodiscard]] static __device__ float apply(float a, float b) { return a + b; }
  [[nodiscard]] static __device__ float finish(float value, float count) { return value / count; }
};

/// How planes are cut into blocks and threads.
struct PlanesPlan {
  const void* x = nullptr;
  void* y = nullptr;
  float* partials = nullptr;  ///< Cells of each block, where several share a plane.
  int planes = 0;
  int height = 0;
  int width = 0;
  int block_planes = 1;
  int log2_blocks = 0;      ///< That share a plane.
  int log2_pieces = 0;      ///< Of a cell's rows, in a block.
  int step = 1;             ///< Columns that a thread reduces to one value before they go to shared memory.
  Divisor by_row = {};      ///< Accesses of a row.
  Divisor by_plane = {};    ///< Pieces of a plane, in a block.
  Divisor by_columns = {};  ///< Cells of a row.
  Divisor by_bins = {};
  Divisor by_channels = {};
  int log2_cell_lanes = 0;
  int log2_bin_lanes = 0;
  float x_scale = 1;
  float y_scale = 1;
};

/// For all lanes of a warp at once.
template <class Reduce>
__device__ float reduce_lanes(float value, int log2_lanes) {
  for (int distance = (1 << log2_lanes) / 2; distance > 0; distance /= 2) {
    value = Reduce::apply(value, __shfl_xor_sync(0xFFFFFFFFU, value, distance));
  }
  return value;
}

template <class T>
__device__ T to_output(float value, float x_scale, float y_scale) {
  if constexpr (std::is_same_v<T, std::int8_t>) return quantize_device(value * x_scale, y_scale);
  return static_cast<T>(value);
}

/// Kernel arguments lie in constant memory, which serves the lanes of a warp one address after the other. Shared memory
/// does not mind. No barrier here.
__device__ inline void copy_to_shared(const Pyramid& argument, Pyramid& copy) {
  static_assert(sizeof(Pyramid) % sizeof(int) == 0);
  const Pyramid* address = &argument;
  asm volatile("" : "+l"(address));  // otherwise the compiler knows it for an argument
  const auto* from = reinterpret_cast<const int*>(address);
  auto* to = reinterpret_cast<int*>(&copy);
  for (unsigned i = threadIdx.x; i < sizeof(Pyramid) / sizeof(int); i += blockDim.x) to[i] = from[i];
}

/// From the cells of `planes` planes, the first of which is number `first`, to y.
template <class T, class Reduce>
__device__ void reduce_cells_to_bins(const Pyramid& pyramid, const PlanesPlan& plan, const float* cells, int first,
                                     int planes) {
  const int lanes = 1 << plan.log2_bin_lanes;
  const int lane = static_cast<int>(threadIdx.x) & (lanes - 1);
  const int work = planes * pyramid.bins;
  const int columns = pyramid.columns.cells;
  // Whole warps go on together, for they exchange values.
  for (int start = 0; start < work; start += static_cast<int>(blockDim.x) >> plan.log2_bin_lanes) {
    const int task = start + (static_cast<int>(threadIdx.x) >> plan.log2_bin_lanes);
    const int plane = plan.by_bins.quotient(task);
    const int bin = task - plane * pyramid.bins;
    int number = 0;
    while (number + 1 < pyramid.levels && bin >= pyramid.level[number + 1].first_bin) ++number;
    const PyramidLevel& level = pyramid.level[number];
    const int index = bin - level.first_bin;
    const int row = index / level.side;
    const int row_bin = level.first_axis_bin + row;
    const int column_bin = level.first_axis_bin + index - row * level.side;
    float value = Reduce::identity();
    if (task < work) {
      const float* from = cells + plane * pyramid.rows.cells * columns;
      for (int i = pyramid.rows.first[row_bin]; i < pyramid.rows.last[row_bin]; ++i) {
        for (int j = pyramid.columns.first[column_bin] + lane; j < pyramid.columns.last[column_bin]; j += lanes) {
          value = Reduce::apply(value, from[i * columns + j]);
        }
      }
    }
    value = reduce_lanes<Reduce>(value, plan.log2_bin_lanes);
    if (task >= work || lane != 0) continue;
    const int item = plan.by_channels.quotient(first + plane);
    const int channel = first + plane - item * pyramid.channels;
    const std::int64_t at = (std::int64_t{item} * pyramid.bins + level.first_bin) * pyramid.channels +
                            std::int64_t{channel} * level.side * level.side + index;
    const int count =
        level.divisor > 0 ? level.divisor : pyramid.rows.length(row_bin) * pyramid.columns.length(column_bin);
    value = Reduce::finish(value, static_cast<float>(count));
    static_cast<T*>(plan.y)[at] = to_output<T>(value, plan.x_scale, plan.y_scale);
  }
}

/// One piece of a column of vectors, from `begin` to `end`.
template <class T, int N, class Reduce>
__device__ void reduce_rows(const T* from, int width, int count, float (&values)[N]) {
  constexpr int R = PlanesPolicy::rows_in_flight;
#pragma unroll
  for (float& value : values) value = Reduce::identity();
  for (int row = 0; row < count; row += R) {
    Vector<T, N> loads[R];
#pragma unroll
    for (int r = 0; r < R; ++r) {
      if (row + r < count) loads[r] = Vector<T, N>::load(from + static_cast<std::int64_t>(row + r) * width);
    }
#pragma unroll
    for (int r = 0; r < R; ++r) {
      if (row + r >= count) continue;
      float each[N];
      loads[r].unpack(each);
#pragma unroll
      for (int i = 0; i < N; ++i) values[i] = Reduce::apply(values[i], each[i]);
    }
  }
}

template <class T, int N, class Reduce>
__global__ void __launch_bounds__(PlanesPolicy::most_threads)
    pool_planes(const __grid_constant__ Pyramid argument, const __grid_constant__ PlanesPlan plan) {
  const int threads = static_cast<int>(blockDim.x);
  extern __shared__ float shared[];
  __shared__ Pyramid pyramid;
  copy_to_shared(argument, pyramid);
  const int blocks = 1 << plan.log2_blocks;
  const int part = static_cast<int>(blockIdx.x) & (blocks - 1);
  const int first = static_cast<int>(blockIdx.x >> plan.log2_blocks) * plan.block_planes;
  const int planes = ::min(plan.block_planes, plan.planes - first);
  const int row_cells = argument.rows.cells;
  const int column_cells = argument.columns.cells;
  const int pieces = 1 << plan.log2_pieces;
  const int accesses = plan.width / N;
  const int kept = plan.width / plan.step;  // columns in shared memory
  float* columns = shared;                  // [plane][cell of rows][piece][column]
  float* cells = shared + plan.block_planes * row_cells * pieces * kept;

  for (int task = static_cast<int>(threadIdx.x); task < planes * row_cells * pieces * accesses; task += threads) {
    const int slot = plan.by_row.quotient(task);  // plane, cell and piece
    const int column = (task - slot * accesses) * N;
    const int plane = plan.by_plane.quotient(slot);
    const int piece_of_plane = slot - plane * row_cells * pieces;
    const int cell = piece_of_plane >> plan.log2_pieces;
    const int piece = (part << plan.log2_pieces) + (piece_of_plane & (pieces - 1));
    const int log2_shares = plan.log2_blocks + plan.log2_pieces;
    const int cell_begin = argument.rows.borders[cell];
    const std::int64_t length = argument.rows.borders[cell + 1] - cell_begin;
    const int begin = cell_begin + static_cast<int>(length * piece >> log2_shares);
    const int end = cell_begin + static_cast<int>(length * (piece + 1) >> log2_shares);
    const T* from =
        static_cast<const T*>(plan.x) + (std::int64_t{first + plane} * plan.height + begin) * plan.width + column;
    float values[N];
    reduce_rows<T, N, Reduce>(from, plan.width, end - begin, values);
    if (plan.step == N) {
#pragma unroll
      for (int i = 1; i < N; ++i) values[0] = Reduce::apply(values[0], values[i]);
      columns[task] = values[0];
    } else {
#pragma unroll
      for (int i = 0; i < N; ++i) columns[slot * kept + column + i] = values[i];
    }
  }
  __syncthreads();

  const int lanes = 1 << plan.log2_cell_lanes;
  const int lane = static_cast<int>(threadIdx.x) & (lanes - 1);
  const int work = planes * row_cells * column_cells;
  for (int start = 0; start < work; start += threads >> plan.log2_cell_lanes) {
    const int task = start + (static_cast<int>(threadIdx.x) >> plan.log2_cell_lanes);
    const int row = plan.by_columns.quotient(task);  // plane and cell
    const int cell = task - row * column_cells;
    float value = Reduce::identity();
    if (task < work) {
      const int begin = pyramid.columns.borders[cell] / plan.step;
      const int end = pyramid.columns.borders[cell + 1] / plan.step;
      for (int piece = 0; piece < pieces; ++piece) {
        const float* from = columns + ((row << plan.log2_pieces) + piece) * kept;
        for (int i = begin + lane; i < end; i += lanes) value = Reduce::apply(value, from[i]);
      }
    }
    value = reduce_lanes<Reduce>(value, plan.log2_cell_lanes);
    if (task < work && lane == 0) {
      if (blocks > 1) {
        plan.partials[static_cast<std::int64_t>(blockIdx.x) * work + task] = value;
      } else {
        cells[task] = value;
      }
    }
  }
  if (blocks > 1) return;
  __syncthreads();
  reduce_cells_to_bins<T, Reduce>(pyramid, plan, cells, first, planes);
}

/// Where several blocks shared a plane: a block for each plane.
template <class T, class Reduce>
__global__ void __launch_bounds__(PlanesPolicy::most_threads)
    pool_partials(const __grid_constant__ Pyramid argument, const __grid_constant__ PlanesPlan plan) {
  extern __shared__ float shared[];
  __shared__ Pyramid pyramid;
  copy_to_shared(argument, pyramid);
  const int cells = argument.rows.cells * argument.columns.cells;
  const int blocks = 1 << plan.log2_blocks;
  const float* from = plan.partials + static_cast<std::int64_t>(blockIdx.x) * blocks * cells;
  for (int cell = static_cast<int>(threadIdx.x); cell < cells; cell += static_cast<int>(blockDim.x)) {
    float value = Reduce::identity();
    for (int block = 0; block < blocks; ++block) value = Reduce::apply(value, from[block * cells + cell]);
    shared[cell] = value;
  }
  __syncthreads();
  reduce_cells_to_bins<T, Reduce>(pyramid, plan, shared, static_cast<int>(blockIdx.x), 1);
}

[[nodiscard]] inline int log2_at_least(std::int64_t value) {
  int log = 0;
  while (std::int64_t{1} << log < value) ++log;
  return log;
}

}  // namespace detail

/// Bytes of shared memory of a block that takes one plane in one piece, column by column.
[[nodiscard]] inline std::int64_t planes_shared(const Pyramid& pyramid, std::int64_t width) {
  return (pyramid.rows.cells * width + pyramid.rows.cells * pyramid.columns.cells) * std::int64_t{sizeof(float)};
}

[[nodiscard]] inline bool planes_fit(const Pyramid& pyramid, std::int64_t width) {
  return planes_shared(pyramid, width) <= detail::PlanesPolicy::most_shared;
}

/// In vectors of N elements. `partials`: room for `room` floats, for planes that blocks share.
template <class T, int N, class Reduce>
[[nodiscard]] Status run_planes(const SpatialPyramidPooling& op, const Pyramid& pyramid, const Extents& extents,
                                const T* x, T* y, float* partials, std::int64_t room, const DeviceTraits& device,
                                const CudaContext& context) {
  using namespace detail;
  using Policy = PlanesPolicy;
  const int row_cells = pyramid.rows.cells;
  const int cells = row_cells * pyramid.columns.cells;
  PlanesPlan plan{.x = x,
                  .y = y,
                  .partials = partials,
                  .planes = static_cast<int>(extents[0] * extents[1]),
                  .height = static_cast<int>(extents[2]),
                  .width = static_cast<int>(extents[3])};
  plan.x_scale = op.x_scale;
  plan.y_scale = op.y_scale;
  const auto divides = [&](int border) { return border % N == 0; };
  plan.step =
      std::all_of(pyramid.columns.borders, pyramid.columns.borders + pyramid.columns.cells + 1, divides) ? N : 1;
  const int accesses = plan.width / N;
  const std::int64_t planes = plan.planes;
  const std::int64_t plane_accesses = std::int64_t{plan.height} * accesses;
  const std::int64_t enough_threads = device.multiprocessors * Policy::enough_threads;
  int threads = Policy::most_threads;
  const int least_threads = plane_accesses <= Policy::short_plane ? 2 * Policy::least_threads : Policy::least_threads;
  while (threads > least_threads && planes * threads / 2 >= enough_threads) threads /= 2;

  // Blocks share long planes if there are few, and take several short ones if there are many.
  const std::int64_t block_accesses = std::int64_t{threads} * Policy::rows_in_flight;
  if (plane_accesses * std::int64_t{N * sizeof(T)} >= Policy::long_plane) {
    while (planes * threads << plan.log2_blocks < enough_threads &&
           (planes << (plan.log2_blocks + 1)) * cells <= room &&
           plane_accesses >> (plan.log2_blocks + 1) >= block_accesses) {
      ++plan.log2_blocks;
    }
  }
  const auto shared_of = [&](std::int64_t block_planes, int log2_pieces) {
    const std::int64_t columns = (std::int64_t{row_cells} << log2_pieces) * (plan.width / plan.step);
    return block_planes * (columns + cells) * std::int64_t{sizeof(float)};
  };
  std::int64_t block_planes = 1;
  if (plan.log2_blocks == 0) {
    block_planes = std::clamp<std::int64_t>(block_accesses / plane_accesses, 1,
                                            std::max<std::int64_t>(planes * threads / enough_threads, 1));
  }
  while (block_planes > 1 && shared_of(block_planes, 0) > Policy::most_shared) --block_planes;
  plan.block_planes = static_cast<int>(block_planes);
  while (block_planes * row_cells * accesses << plan.log2_pieces < threads &&
         plan.height >> (plan.log2_blocks + plan.log2_pieces) >= 2 * row_cells &&
         shared_of(block_planes, plan.log2_pieces + 1) <= Policy::most_shared) {
    ++plan.log2_pieces;
  }

  plan.by_row = Divisor(accesses);
  plan.by_plane = Divisor(row_cells << plan.log2_pieces);
  plan.by_columns = Divisor(pyramid.columns.cells);
  plan.by_bins = Divisor(pyramid.bins);
  plan.by_channels = Divisor(pyramid.channels);
  plan.log2_cell_lanes = std::min(log2_at_least(ceil_divide(plan.width / plan.step, pyramid.columns.cells * 2)), 5);
  plan.log2_bin_lanes = pyramid.columns.cells > 4 ? 2 : 0;

  const Grid grid{ceil_divide(planes, block_planes) << plan.log2_blocks, threads, 1,
                  static_cast<int>(shared_of(block_planes, plan.log2_pieces))};
  if (Status status = launch("SpatialPyramidPooling", pool_planes<T, N, Reduce>, grid, context, pyramid, plan);
      !status.ok() || plan.log2_blocks == 0) {
    return status;
  }
  const Grid last{planes, Policy::least_threads, 1, cells * static_cast<int>(sizeof(float))};
  return launch("SpatialPyramidPooling", pool_partials<T, Reduce>, last, context, pyramid, plan);
}

}  // namespace graft

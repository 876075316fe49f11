// SpatialPyramidPooling in one pass: a block pools whole planes, or a part of each row of cells of one plane. Threads
// reduce the rows of a cell column by column; lanes then reduce the columns to strips, the part of each bin in a row of
// cells; strips are then reduced to bins.
#pragma once

#include <cstdint>

#include "kernels/divisor.cuh"
#include "kernels/launch.cuh"
#include "kernels/mma.cuh"
#include "kernels/vector.cuh"
#include "ops/spatial_pyramid_pooling/pyramid.cuh"
#include "ops/spatial_pyramid_pooling/reduction.cuh"

namespace graft::ops {
namespace detail {

/// The sizes of blocks and the work per thread, tuned on an H200.
struct PlanesPolicy {
  static constexpr int most_threads = 256;
  static constexpr int rows_in_flight = 4;  ///< The number of loads that a thread issues before it uses the first one.
  /// The least number of threads that a multiprocessor should have in all of its blocks. If one block per plane gives
  /// more threads than this, blocks become smaller, so that some blocks load while others compute.
  static constexpr std::int64_t enough_threads = 1024;
  static constexpr int least_threads = 64;
  /// The maximum number of bytes of the short planes that a block stages in shared memory.
  static constexpr std::int64_t staged_bytes = 12288;
  /// The number of blocks per multiprocessor from which a block pools several planes.
  static constexpr std::int64_t enough_blocks = 8;
  /// The maximum number of accesses to a plane that counts as short. A block of short planes that are not staged has at
  /// least 2 * least_threads threads; a staged block of fewer accesses has most_threads / 2 threads.
  static constexpr std::int64_t short_plane = 256;
  static constexpr int most_shared = 46 * 1024;  ///< The maximum number of bytes of shared memory without the pyramid.
  /// The size in bytes of a plane from which several blocks may share it.
  static constexpr std::int64_t long_plane = 65536;
};

/// The division of planes between blocks and threads.
struct PlanesPlan {
  const void* x = nullptr;
  void* y = nullptr;
  void* partials = nullptr;  ///< The strips of each block, if several blocks share a plane.
  int planes = 0;
  int height = 0;
  int width = 0;
  int block_planes = 1;
  int log2_blocks = 0;  ///< The binary logarithm of the number of blocks that share a plane.
  /// The binary logarithm of the number of pieces into which a block divides the rows of a cell (a range of rows
  /// between two borders of bins).
  int log2_pieces = 0;
  int accesses = 0;  ///< The number of accesses to a row.
  /// The number of vectors of 16 bytes at the beginning of shared memory that contain staged planes.
  int staged_vectors = 0;
  int column_stride = 0;  ///< The distance in elements from one piece of a cell of rows to the next.
  int strip_stride = 0;   ///< The distance in elements from one cell of rows to the next.
  /// The binary logarithm of the number of columns that a thread reduces to one before it stores them in shared memory:
  /// N or one.
  int log2_step = 0;
  Divisor by_row = {};    ///< The divisor is `accesses`.
  Divisor by_plane = {};  ///< The divisor is the number of pieces of a plane in a block.
  Divisor by_row_cells = {};
  Divisor by_axis_bins = {};
  Divisor by_channels = {};
  int log2_bin_lanes = 0;  ///< The binary logarithm of the number of lanes that share a bin along a row.
  float x_scale = 1;
  Quantizer quantizer = {};
};

/// Copies the axes to shared memory, without a barrier. Kernel arguments are in constant memory, which serves the
/// different addresses of a warp one after the other, whereas shared memory serves them together.
__device__ inline void copy_to_shared(const PyramidAxes& argument, PyramidAxes& copy) {
  static_assert(sizeof(PyramidAxes) % sizeof(int) == 0);
  const PyramidAxes* address = &argument;
  asm volatile("" : "+l"(address));  // Hides from the compiler that this is the address of an argument.
  const auto* from = reinterpret_cast<const int*>(address);
  auto* to = reinterpret_cast<int*>(&copy);
  for (unsigned i = threadIdx.x; i < sizeof(PyramidAxes) / sizeof(int); i += blockDim.x) to[i] = from[i];
}

/// Reduces the strips of `planes` planes, beginning with plane `first`, and stores y. The block must have 2^n threads.
/// A strip is the part of a bin's columns in one cell of rows. Strips are stored as strips[cell of rows][plane][bin
/// along a row, level after level].
template <class T, class Reduce, class V>
__device__ void reduce_strips_to_bins(const Pyramid& pyramid, const PyramidAxes& axes, const PlanesPlan& plan,
                                      const V* strips, int first, int planes) {
  const int threads = static_cast<int>(blockDim.x);
  int thread = static_cast<int>(threadIdx.x);
  for (int number = 0; number < pyramid.levels; ++number) {
    const PyramidLevel& level = pyramid.level[number];
    const int side = level.side;
    const int work = planes * side * side;
    for (int task = thread; task < work; task += threads) {
      const int plane = level.by_bins.quotient(task);
      const int bin = task - plane * side * side;
      const int row = level.by_side.quotient(bin);
      const int row_bin = level.first_axis_bin + row;
      const int column_bin = level.first_axis_bin + bin - row * side;
      const V* from = strips + plane * pyramid.axis_bins + column_bin;
      V value = Reduce::template identity<V>();
      const int end = axes.rows.last[row_bin];
      for (int i = axes.rows.first[row_bin]; i < end; ++i) value = Reduce::apply(value, from[i * plan.strip_stride]);
      const int item = plan.by_channels.quotient(first + plane);
      const int channel = first + plane - item * pyramid.channels;
      const std::int64_t at = (std::int64_t{item} * pyramid.bins + level.first_bin) * pyramid.channels +
                              std::int64_t{channel} * (side * side) + bin;
      const int count = level.divisor > 0 ? level.divisor : axes.rows.length(row_bin) * axes.columns.length(column_bin);
      const float finished = Reduce::finish(static_cast<float>(value), static_cast<float>(count));
      static_cast<T*>(plan.y)[at] = to_output<T>(finished, plan.x_scale, plan.quantizer);
    }
    // The next level begins with the warps that this level left without work.
    thread = (thread - ((work + 31) & ~31)) & (threads - 1);
  }
}

/// Reduces `count` rows of a column of vectors into `columns`.
template <class T, int N, class Reduce>
__device__ void reduce_rows(const T* from, int width, int count, Columns<T, Reduce, N>& columns) {
  constexpr int R = PlanesPolicy::rows_in_flight;
  for (int row = 0; row < count; row += R) {
    Vector<T, N> loads[R];
#pragma unroll
    for (int r = 0; r < R; ++r) {
      if (row + r < count) loads[r] = Vector<T, N>::load(from + static_cast<std::int64_t>(row + r) * width);
    }
#pragma unroll
    for (int r = 0; r < R; ++r) {
      if (row + r < count) columns.add(loads[r]);
    }
  }
}

/// Returns 16 bytes of shared memory from byte `at` on. Alignment, which divides `at`, is 16, 4 or 1.
template <int Alignment, class T>
__device__ Vector<T, widest<T>> load_staged(const unsigned* staged, unsigned at) {
  Vector<T, widest<T>> vector;
  const unsigned* from = staged + at / 4;
  if constexpr (Alignment == 16) {
    vector.raw = *reinterpret_cast<const uint4*>(from);
  } else {
    unsigned words[5];
#pragma unroll
    for (int w = 0; w < (Alignment == 4 ? 4 : 5); ++w) words[w] = from[w];
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      vector.word(w) = Alignment == 4 ? words[w] : __funnelshift_r(words[w], words[w + 1], 8 * (at % 4));
    }
  }
  return vector;
}

template <int Alignment, class T, class Reduce>
__device__ void reduce_staged(const unsigned* staged, unsigned at, unsigned row_bytes, int count,
                              Columns<T, Reduce, widest<T>>& columns) {
#pragma unroll 2
  for (int row = 0; row < count; ++row) {
    columns.add(load_staged<Alignment, T>(staged, at));
    at += row_bytes;
  }
}

/// Reduces `count` rows of a column of vectors in shared memory, from byte `at` on, into `columns`. Columns past the
/// end of a row receive the elements that follow it in memory.
template <class T, class Reduce>
__device__ void reduce_staged_rows(const unsigned* staged, unsigned at, unsigned row_bytes, int count,
                                   Columns<T, Reduce, widest<T>>& columns) {
  if (row_bytes % 16 == 0) {
    reduce_staged<16>(staged, at, row_bytes, count, columns);
  } else if (row_bytes % 4 == 0) {
    reduce_staged<4>(staged, at, row_bytes, count, columns);
  } else {
    reduce_staged<1>(staged, at, row_bytes, count, columns);
  }
}

/// Starts asynchronous copies of all planes of a block to shared memory. Returns the offset in bytes at which the first
/// plane begins.
template <class T>
__device__ int stage(const PlanesPlan& plan, int first, int planes, unsigned* staged) {
  constexpr int bytes = 16;  // the number of bytes of a copy
  const std::int64_t plane_bytes = std::int64_t{plan.height} * plan.width * static_cast<int>(sizeof(T));
  const std::int64_t begin = first * plane_bytes;
  const int before = static_cast<int>(begin & (bytes - 1));
  const char* from = static_cast<const char*>(plan.x) + begin - before;
  const int count = before + planes * static_cast<int>(plane_bytes);
  const int vectors = count & ~(bytes - 1);
  for (int i = static_cast<int>(threadIdx.x) * bytes; i < vectors; i += static_cast<int>(blockDim.x) * bytes) {
    copy_async(shared_address(staged) + i, from + i, bytes);
  }
  // The tensor may end within the last vector. compute-sanitizer reports any asynchronous copy from such a vector,
  // however few bytes it copies.
  for (int i = vectors + static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) {
    reinterpret_cast<char*>(staged)[i] = from[i];
  }
  commit_copies();
  return before;
}

/// Pools planes, or parts of a plane that several blocks share. If `Staged` is true, planes are first copied to shared
/// memory, and N is widest<T>.
template <class T, int N, class Reduce, bool Staged>
__global__ void __launch_bounds__(PlanesPolicy::most_threads)
    pool_planes(const __grid_constant__ Pyramid pyramid, const __grid_constant__ PlanesPlan plan) {
  using Stored = typename Reduce::template Stored<T>;
  using Value = typename Reduce::template Value<T>;
  const int threads = static_cast<int>(blockDim.x);
  extern __shared__ uint4 shared_vectors[];
  __shared__ PyramidAxes axes;
  const int blocks = 1 << plan.log2_blocks;
  const int part = static_cast<int>(blockIdx.x) & (blocks - 1);
  const int first = static_cast<int>(blockIdx.x >> plan.log2_blocks) * plan.block_planes;
  const int planes = ::min(plan.block_planes, plan.planes - first);
  const int row_cells = pyramid.axes.rows.cells;
  const int pieces = 1 << plan.log2_pieces;
  const int accesses = plan.accesses;
  auto* staged = reinterpret_cast<unsigned*>(shared_vectors);
  auto* strips = reinterpret_cast<Value*>(shared_vectors + plan.staged_vectors);
  // Columns of each cell of rows of each plane, in pieces.
  auto* columns = reinterpret_cast<Stored*>(strips + row_cells * plan.strip_stride);
  [[maybe_unused]] int before = 0;
  if constexpr (Staged) before = stage<T>(plan, first, planes, staged);
  copy_to_shared(pyramid.axes, axes);
  if constexpr (Staged) {
    wait_for_copies<0>();
    __syncthreads();
  }

  for (int task = static_cast<int>(threadIdx.x); task < planes * row_cells * pieces * accesses; task += threads) {
    const int slot = plan.by_row.quotient(task);  // plane, cell and piece
    const int column = (task - slot * accesses) * N;
    const int plane = plan.by_plane.quotient(slot);
    const int piece_of_plane = slot - plane * row_cells * pieces;
    const int cell = piece_of_plane >> plan.log2_pieces;
    const int piece = (part << plan.log2_pieces) + (piece_of_plane & (pieces - 1));
    const int log2_shares = plan.log2_blocks + plan.log2_pieces;
    // Without `Staged`, no barrier has made `axes` visible yet.
    const PyramidAxis& rows = Staged ? axes.rows : pyramid.axes.rows;
    const int cell_begin = rows.borders[cell];
    const std::conditional_t<Staged, int, std::int64_t> length = rows.borders[cell + 1] - cell_begin;
    const int begin = cell_begin + static_cast<int>(length * piece >> log2_shares);
    const int end = cell_begin + static_cast<int>(length * (piece + 1) >> log2_shares);
    Columns<T, Reduce, N> sums;
    if constexpr (Staged) {
      const int row_bytes = plan.width * static_cast<int>(sizeof(T));
      const int at = before + (plane * plan.height + begin) * row_bytes + column * static_cast<int>(sizeof(T));
      reduce_staged_rows(staged, static_cast<unsigned>(at), static_cast<unsigned>(row_bytes), end - begin, sums);
    } else {
      const T* from =
          static_cast<const T*>(plan.x) + (std::int64_t{first + plane} * plan.height + begin) * plan.width + column;
      reduce_rows(from, plan.width, end - begin, sums);
    }
    Stored* to = columns + slot * plan.column_stride;
    if (plan.log2_step > 0) {
      to[task - slot * accesses] = static_cast<Stored>(sums.total());
    } else {
      sums.store(to + column);
    }
  }
  __syncthreads();

  // A warp reduces one bin along the rows, so that its lanes do not diverge.
  const int slots = planes * row_cells;
  const int log2_slots = 5 - plan.log2_bin_lanes;  // the logarithm of the number of slots of a warp
  const int lane = static_cast<int>(threadIdx.x) & ((1 << plan.log2_bin_lanes) - 1);
  const int work = ((slots + (1 << log2_slots) - 1) >> log2_slots) * pyramid.axis_bins;
  for (int task = static_cast<int>(threadIdx.x) / 32; task < work; task += threads / 32) {
    const int group = plan.by_axis_bins.quotient(task);
    const int bin = task - group * pyramid.axis_bins;
    const int slot = (group << log2_slots) + (static_cast<int>(threadIdx.x % 32) >> plan.log2_bin_lanes);
    const int begin = axes.columns.borders[axes.columns.first[bin]] >> plan.log2_step;
    const int end = axes.columns.borders[axes.columns.last[bin]] >> plan.log2_step;
    const Stored* from = columns + (::min(slot, slots - 1) << plan.log2_pieces) * plan.column_stride;
    Value value = Reduce::template identity<Value>();
    for (int piece = 0; piece < pieces; ++piece) {
#pragma unroll 4
      for (int i = begin + lane; i < end; i += 1 << plan.log2_bin_lanes) {
        value = Reduce::apply(value, static_cast<Value>(from[i]));
      }
      from += plan.column_stride;
    }
    value = reduce_lanes<Reduce>(value, plan.log2_bin_lanes);
    if (slot >= slots || lane != 0) continue;
    const int plane = plan.by_row_cells.quotient(slot);
    const int at = (slot - plane * row_cells) * plan.strip_stride + plane * pyramid.axis_bins + bin;
    if (blocks > 1) {
      static_cast<Value*>(plan.partials)[static_cast<std::int64_t>(blockIdx.x) * row_cells * plan.strip_stride + at] =
          value;
    } else {
      strips[at] = value;
    }
  }
  if (blocks > 1) return;
  __syncthreads();
  reduce_strips_to_bins<T, Reduce>(pyramid, axes, plan, strips, first, planes);
}

/// Completes planes that several blocks share, with one block per plane, from the strips that pool_planes() has stored
/// in `partials`.
template <class T, class Reduce>
__global__ void __launch_bounds__(PlanesPolicy::most_threads)
    pool_partials(const __grid_constant__ Pyramid pyramid, const __grid_constant__ PlanesPlan plan) {
  using Value = typename Reduce::template Value<T>;
  extern __shared__ uint4 shared_vectors[];
  __shared__ PyramidAxes axes;
  copy_to_shared(pyramid.axes, axes);
  auto* strips = reinterpret_cast<Value*>(shared_vectors);
  const int count = pyramid.axes.rows.cells * plan.strip_stride;
  const int blocks = 1 << plan.log2_blocks;
  const Value* from = static_cast<const Value*>(plan.partials) + static_cast<std::int64_t>(blockIdx.x) * blocks * count;
  for (int strip = static_cast<int>(threadIdx.x); strip < count; strip += static_cast<int>(blockDim.x)) {
    Value value = Reduce::template identity<Value>();
    for (int block = 0; block < blocks; ++block) value = Reduce::apply(value, from[block * count + strip]);
    strips[strip] = value;
  }
  __syncthreads();
  reduce_strips_to_bins<T, Reduce>(pyramid, axes, plan, strips, static_cast<int>(blockIdx.x), 1);
}

[[nodiscard]] inline int log2_at_least(std::int64_t value) {
  int log = 0;
  while (std::int64_t{1} << log < value) ++log;
  return log;
}

/// Returns the number of elements of a row of `elements` elements of `size` bytes after padding to an odd number of
/// 4-byte words, so that lanes that read down a column access different banks of shared memory.
[[nodiscard]] inline std::int64_t odd_words(std::int64_t elements, std::int64_t size) {
  return (ceil_divide(elements * size, 4) | 1) * 4 / size;
}

/// Returns the bytes of shared memory of a block that pools one plane in one piece, column by column.
[[nodiscard]] inline std::int64_t plane_shared(const Pyramid& pyramid, std::int64_t width) {
  return pyramid.axes.rows.cells * (odd_words(width, 4) + (pyramid.axis_bins | 1)) * std::int64_t{sizeof(float)};
}

}  // namespace detail

[[nodiscard]] inline bool planes_fit(const Pyramid& pyramid, std::int64_t width) {
  return detail::plane_shared(pyramid, width) <= detail::PlanesPolicy::most_shared;
}

/// Pools all planes with pool_planes() in vectors of N elements. `partials` has space for `room` floats, which hold the
/// strips of planes that several blocks share.
template <class T, int N, class Reduce, bool Staged>
[[nodiscard]] Status run_planes(const SpatialPyramidPooling& op, const Pyramid& pyramid, const Extents& extents,
                                const T* x, T* y, float* partials, std::int64_t room, const DeviceTraits& device,
                                const CudaContext& context) {
  using namespace detail;
  using Policy = PlanesPolicy;
  using Stored = typename Reduce::template Stored<T>;
  const int row_cells = pyramid.axes.rows.cells;
  const int strips = row_cells * pyramid.axis_bins;  // the number of strips of one plane
  PlanesPlan plan{.x = x,
                  .y = y,
                  .partials = partials,
                  .planes = static_cast<int>(extents[0] * extents[1]),
                  .height = static_cast<int>(extents[2]),
                  .width = static_cast<int>(extents[3])};
  plan.x_scale = op.x_scale;
  plan.quantizer = Quantizer(op.y_scale);
  plan.accesses = static_cast<int>(ceil_divide(plan.width, N));
  const PyramidAxis& axis = pyramid.axes.columns;
  if (std::all_of(axis.borders, axis.borders + axis.cells + 1, [](int border) { return border % N == 0; })) {
    plan.log2_step = log2_at_least(N);
  }
  plan.column_stride = static_cast<int>(odd_words((plan.accesses * N) >> plan.log2_step, sizeof(Stored)));
  const std::int64_t planes = plan.planes;
  const std::int64_t plane_accesses = std::int64_t{plan.height} * plan.accesses;
  const std::int64_t plane_bytes = std::int64_t{plan.height} * plan.width * static_cast<std::int64_t>(sizeof(T));
  const std::int64_t enough_threads = device.multiprocessors * Policy::enough_threads;
  const auto staged_vectors = [&](std::int64_t block_planes) {
    // The planes of a block may begin within a vector, and the last load may reach past their end by a vector and a
    // word.
    return Staged ? ceil_divide(block_planes * plane_bytes, 16) + 3 : 0;
  };
  const auto strip_stride = [&](std::int64_t block_planes) {
    return plan.log2_blocks > 0 ? pyramid.axis_bins : (block_planes * pyramid.axis_bins) | 1;
  };
  const auto shared_of = [&](std::int64_t block_planes, int log2_pieces) {
    const std::int64_t columns = (block_planes * row_cells << log2_pieces) * plan.column_stride;
    return staged_vectors(block_planes) * 16 + row_cells * strip_stride(block_planes) * std::int64_t{sizeof(float)} +
           columns * static_cast<std::int64_t>(sizeof(Stored));
  };

  // Several blocks share a long plane if there are few planes; a block pools several short planes if there are many.
  std::int64_t block_planes = 1;
  int threads = Policy::most_threads;
  if constexpr (Staged) {
    const std::int64_t enough_blocks = device.multiprocessors * Policy::enough_blocks;
    block_planes = std::clamp<std::int64_t>(Policy::staged_bytes / plane_bytes, 1,
                                            std::max<std::int64_t>(planes / enough_blocks, 1));
    while (block_planes > 1 && shared_of(block_planes, 0) > Policy::most_shared) --block_planes;
    if (planes >= enough_blocks * block_planes || block_planes * plane_accesses < Policy::short_plane) threads /= 2;
  } else {
    const int least_threads = plane_accesses <= Policy::short_plane ? 2 * Policy::least_threads : Policy::least_threads;
    while (threads > least_threads && planes * threads / 2 >= enough_threads) threads /= 2;
    const std::int64_t block_accesses = std::int64_t{threads} * Policy::rows_in_flight;
    if (plane_bytes >= Policy::long_plane) {
      while (planes * threads << plan.log2_blocks < enough_threads &&
             (planes << (plan.log2_blocks + 1)) * strips <= room &&
             plane_accesses >> (plan.log2_blocks + 1) >= block_accesses) {
        ++plan.log2_blocks;
      }
    }
    if (plan.log2_blocks == 0) {
      block_planes = std::clamp<std::int64_t>(block_accesses / plane_accesses, 1,
                                              std::max<std::int64_t>(planes * threads / enough_threads, 1));
    }
    while (block_planes > 1 && shared_of(block_planes, 0) > Policy::most_shared) --block_planes;
  }
  plan.block_planes = static_cast<int>(block_planes);
  plan.staged_vectors = static_cast<int>(staged_vectors(block_planes));
  plan.strip_stride = static_cast<int>(strip_stride(block_planes));
  while (block_planes * row_cells * plan.accesses << plan.log2_pieces <= threads / 2 &&
         plan.height >> (plan.log2_blocks + plan.log2_pieces) >= 2 * row_cells &&
         shared_of(block_planes, plan.log2_pieces + 1) <= Policy::most_shared) {
    ++plan.log2_pieces;
  }
  while (plan.log2_bin_lanes < 5 && block_planes * row_cells << (plan.log2_bin_lanes + 1) <= 32) ++plan.log2_bin_lanes;

  plan.by_row = Divisor(plan.accesses);
  plan.by_plane = Divisor(row_cells << plan.log2_pieces);
  plan.by_row_cells = Divisor(row_cells);
  plan.by_axis_bins = Divisor(pyramid.axis_bins);
  plan.by_channels = Divisor(pyramid.channels);

  const Grid grid{ceil_divide(planes, block_planes) << plan.log2_blocks, threads, 1,
                  static_cast<int>(shared_of(block_planes, plan.log2_pieces))};
  if (Status status = launch("SpatialPyramidPooling", pool_planes<T, N, Reduce, Staged>, grid, context, pyramid, plan);
      !status.ok() || plan.log2_blocks == 0) {
    return status;
  }
  const Grid last{planes, Policy::least_threads, 1, strips * static_cast<int>(sizeof(float))};
  return launch("SpatialPyramidPooling", pool_partials<T, Reduce>, last, context, pyramid, plan);
}

/// Returns whether a plane and its intermediate results fit into the shared memory of a block.
template <class T>
[[nodiscard]] bool can_stage(const Pyramid& pyramid, const Extents& extents) {
  const std::int64_t bytes = extents[2] * extents[3] * static_cast<std::int64_t>(sizeof(T));
  return bytes + 64 + detail::plane_shared(pyramid, extents[3] + widest<T>) <= detail::PlanesPolicy::most_shared;
}

}  // namespace graft::ops

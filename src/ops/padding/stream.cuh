// Padding with y as a stream of 16-byte stores, whatever the length of its rows: a tile of rows that begins and ends at
// a multiple of 16 bytes goes to one block or several. Where each row comes from is found once for the tile; vectors
// inside a row are shifted out of two aligned loads, and those that hold a row's ends are put together element by
// element afterwards, so that the threads that do so sit side by side.
#pragma once

#include <cstdint>
#include <numeric>

#include "kernels/divisor.cuh"
#include "kernels/launch.cuh"
#include "kernels/strides.cuh"
#include "kernels/vector.cuh"
#include "ops/padding/geometry.cuh"

namespace graft {

/// What goes into a kernel.
struct PaddingTask {
  const std::byte* x = nullptr;
  std::byte* y = nullptr;
  std::int64_t x_bytes = 0;
  Geometry geometry;
  uint4 outside = {};  ///< The constant, repeated.
  float ratio = 1;     ///< i8: x_scale / y_scale.
};

namespace detail {

/// Tuned on an H200.
struct StreamPolicy {
  static constexpr int threads = 256;
  static constexpr int vectors = 4;      ///< Of a thread, where there are enough.
  static constexpr int most_rows = 256;  ///< Of a tile.
};

/// How a stream is cut into blocks.
struct StreamTiles {
  int rows = 0;           ///< Of a tile.
  int chunks = 1;         ///< Blocks of a tile.
  int chunk_vectors = 0;  ///< Of a block.
  Divisor by_row = {};    ///< The units of a row of y.
  Divisor by_inner = {};
  Divisor by_pixel = {};
};

/// Where the rows of a tile come from.
struct StreamRows {
  std::int64_t source[StreamPolicy::most_rows];  ///< Bytes into x; -1 for a row of constants.
  int first_channel[StreamPolicy::most_rows];    ///< Of channel-vector layouts.
};

__device__ inline void find_rows(const Geometry& geometry, std::int64_t first, int count, StreamRows& rows) {
  for (int r = static_cast<int>(threadIdx.x); r < count; r += static_cast<int>(blockDim.x)) {
    std::int64_t index = first + r;
    std::int64_t units = 0;
    bool outside = false;
    for (int axis = 0; axis < geometry.outer_rank; ++axis) {
      std::int64_t at = index;
      if (axis + 1 < geometry.outer_rank) {
        const std::int64_t extent = geometry.outer_extents[axis];
        const std::int64_t quotient = divide(index, extent);
        at = index - quotient * extent;
        index = quotient;
      }
      const std::int64_t from = geometry.outer_maps[axis](at);
      outside = outside || from < 0;
      units += from * geometry.outer_strides[axis];
      if (axis == geometry.channel_axis) rows.first_channel[r] = static_cast<int>(at) * 32;
    }
    if (geometry.channel_axis < 0) rows.first_channel[r] = 0;
    rows.source[r] = outside ? -1 : units * geometry.unit_bytes;
  }
}

/// 16 bytes from an address that is a multiple of Unit, out of the aligned ones that hold them.
template <int Unit>
struct ShiftedLoad {
  uint4 low;
  uint4 high;
  unsigned offset;

  __device__ void start(const std::byte* address) {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    const auto* aligned = reinterpret_cast<const uint4*>(at & ~std::uintptr_t{15});
    offset = static_cast<unsigned>(at & 15U);
    low = aligned[0];
    high = offset == 0 ? low : aligned[1];
  }
  [[nodiscard]] __device__ static bool stays_inside(const std::byte* address, const std::byte* begin,
                                                    const std::byte* end) {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    const std::uintptr_t first = at & ~std::uintptr_t{15};
    return first >= reinterpret_cast<std::uintptr_t>(begin) &&
           first + ((at & 15U) == 0 ? 16 : 32) <= reinterpret_cast<std::uintptr_t>(end);
  }
  [[nodiscard]] __device__ uint4 finish() const {
    unsigned w[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
    for (int i = 0; i < 6; ++i) w[i] = (offset & 8U) != 0 ? w[i + 2] : w[i];
#pragma unroll
    for (int i = 0; i < 5; ++i) w[i] = (offset & 4U) != 0 ? w[i + 1] : w[i];
    if constexpr (Unit < 4) {
      const unsigned bits = (offset & 3U) * 8;
#pragma unroll
      for (int i = 0; i < 4; ++i) w[i] = __funnelshift_r(w[i], w[i + 1], bits);
    }
    return make_uint4(w[0], w[1], w[2], w[3]);
  }
};

template <bool Scaled>
__device__ uint4 rescaled(uint4 vector, float ratio) {
  if constexpr (Scaled) return Vector<std::int8_t, 16>{vector}.times(ratio).raw;
  return vector;
}

template <int Unit>
using UnitOf = std::conditional_t<Unit == 1, std::uint8_t, std::conditional_t<Unit == 2, std::uint16_t, unsigned>>;

/// The column of x, in units, that stands at a column of y; -1 for the constant.
__device__ inline int source_column(const AxisMap<int>& map, int inner, const StreamTiles& tiles, int column) {
  if (inner == 1) return map(column);
  const int outer = tiles.by_inner.quotient(column);
  const int from = map(outer);
  return from < 0 ? -1 : from * inner + (column - outer * inner);
}

/// A vector of y, from its first unit on, that lies in two rows or reaches outside x. The last one of y may be short.
template <int Unit, bool Scaled>
__device__ void assemble(const PaddingTask& task, const StreamTiles& tiles, const StreamRows& rows,
                         const AxisMap<int>& map, int first, int limit, std::byte* tile) {
  using Element = UnitOf<Unit>;
  constexpr int count = 16 / Unit;
  const int length = static_cast<int>(task.geometry.row_units());
  const int inner = static_cast<int>(task.geometry.inner);
  int row = tiles.by_row.quotient(first);
  int column = first - row * length;
  std::int64_t source = rows.source[row];
  unsigned words[4] = {};
  unsigned constants[4] = {};
#pragma unroll
  for (int e = 0; e < count; ++e) {
    const unsigned shift = static_cast<unsigned>(e * Unit % 4) * 8;
    const int from = source < 0 ? -1 : source_column(map, inner, tiles, column);
    if (from >= 0 && first + e < limit) {
      const unsigned value = reinterpret_cast<const Element*>(task.x + source)[from];
      words[e * Unit / 4] |= value << shift;
    } else {
      constants[e * Unit / 4] |= (0xFFFFFFFFU >> (32 - 8 * Unit)) << shift;
    }
    if (++column == length && first + e + 1 < limit) {
      column = 0;
      source = rows.source[++row];
    }
  }
  const uint4 moved = rescaled<Scaled>(make_uint4(words[0], words[1], words[2], words[3]), task.ratio);
  const uint4 result = make_uint4((moved.x & ~constants[0]) | (task.outside.x & constants[0]),
                                  (moved.y & ~constants[1]) | (task.outside.y & constants[1]),
                                  (moved.z & ~constants[2]) | (task.outside.z & constants[2]),
                                  (moved.w & ~constants[3]) | (task.outside.w & constants[3]));
  if (first + count <= limit) {
    *reinterpret_cast<uint4*>(tile + static_cast<std::int64_t>(first) * Unit) = result;
    return;
  }
  const unsigned kept[4] = {result.x, result.y, result.z, result.w};
#pragma unroll
  for (int e = 0; e < count; ++e) {
    const unsigned shift = static_cast<unsigned>(e * Unit % 4) * 8;
    if (first + e < limit)
      reinterpret_cast<Element*>(tile)[first + e] = static_cast<Element>(kept[e * Unit / 4] >> shift);
  }
}

template <int Unit, bool Scaled>
__global__ void __launch_bounds__(StreamPolicy::threads)
    pad_stream(const __grid_constant__ PaddingTask task, const __grid_constant__ StreamTiles tiles) {
  using Policy = StreamPolicy;
  constexpr int count = 16 / Unit;
  __shared__ StreamRows rows;
  __shared__ unsigned short ends[Policy::threads * Policy::vectors];
  __shared__ int end_count;
  const unsigned tile_index = blockIdx.x / static_cast<unsigned>(tiles.chunks);
  const int chunk = static_cast<int>(blockIdx.x - tile_index * static_cast<unsigned>(tiles.chunks));
  const std::int64_t first_row = static_cast<std::int64_t>(tile_index) * tiles.rows;
  const int row_count = static_cast<int>(::min(static_cast<std::int64_t>(tiles.rows), task.geometry.rows - first_row));
  const int length = static_cast<int>(task.geometry.row_units());
  const int limit = row_count * length;
  const AxisMap<int> map = task.geometry.column.as_int();
  const int inner = static_cast<int>(task.geometry.inner);
  const int begin = map.begin * inner;
  const int size = map.size * inner;
  std::byte* tile = task.y + first_row * length * Unit;
  const int first_vector = chunk * tiles.chunk_vectors;
  const int vectors = ::min(tiles.chunk_vectors, (limit + count - 1) / count - first_vector);

  if (threadIdx.x == 0) end_count = 0;
  find_rows(task.geometry, first_row, row_count, rows);
  __syncthreads();

  ShiftedLoad<Unit> loads[Policy::vectors];
  bool loaded[Policy::vectors];
#pragma unroll
  for (int j = 0; j < Policy::vectors; ++j) {
    const int vector = static_cast<int>(threadIdx.x) + j * Policy::threads;
    loaded[j] = false;
    if (vector >= vectors) continue;
    const int unit = (first_vector + vector) * count;
    const int row = tiles.by_row.quotient(unit);
    const int column = unit - row * length;
    const int at = column - begin;
    const std::int64_t source = rows.source[row];
    const std::byte* address = task.x + source + static_cast<std::int64_t>(at) * Unit;
    loaded[j] = at >= 0 && at + count <= size && source >= 0 &&
                ShiftedLoad<Unit>::stays_inside(address, task.x, task.x + task.x_bytes);
    if (loaded[j]) {
      loads[j].start(address);
    } else if (source < 0 && column + count <= length) {
      *reinterpret_cast<uint4*>(tile + static_cast<std::int64_t>(unit) * Unit) = task.outside;
    } else {
      ends[atomicAdd(&end_count, 1)] = static_cast<unsigned short>(vector);
    }
  }
#pragma unroll
  for (int j = 0; j < Policy::vectors; ++j) {
    const int unit = (first_vector + static_cast<int>(threadIdx.x) + j * Policy::threads) * count;
    if (loaded[j]) {
      *reinterpret_cast<uint4*>(tile + static_cast<std::int64_t>(unit) * Unit) =
          rescaled<Scaled>(loads[j].finish(), task.ratio);
    }
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < end_count; i += Policy::threads) {
    assemble<Unit, Scaled>(task, tiles, rows, map, (first_vector + ends[i]) * count, limit, tile);
  }
}

/// As pad_stream, of units of 16 bytes. Masked: the last channels of a channel-vector layout are none.
template <bool Scaled, bool Masked>
__global__ void __launch_bounds__(StreamPolicy::threads)
    pad_units(const __grid_constant__ PaddingTask task, const __grid_constant__ StreamTiles tiles) {
  using Policy = StreamPolicy;
  constexpr int unit_bytes = 16;
  __shared__ StreamRows rows;
  const Geometry& geometry = task.geometry;
  const unsigned tile_index = blockIdx.x / static_cast<unsigned>(tiles.chunks);
  const int chunk = static_cast<int>(blockIdx.x - tile_index * static_cast<unsigned>(tiles.chunks));
  const std::int64_t first_row = static_cast<std::int64_t>(tile_index) * tiles.rows;
  const int row_count = static_cast<int>(::min(static_cast<std::int64_t>(tiles.rows), geometry.rows - first_row));
  const int length = static_cast<int>(geometry.row_units());
  const AxisMap<int> map = geometry.column.as_int();
  const int inner = static_cast<int>(geometry.inner);
  uint4* tile = reinterpret_cast<uint4*>(task.y) + first_row * length;
  const int first_vector = chunk * tiles.chunk_vectors;
  const int vectors = ::min(tiles.chunk_vectors, row_count * length - first_vector);

  find_rows(geometry, first_row, row_count, rows);
  __syncthreads();

  uint4 loads[Policy::vectors];
#pragma unroll
  for (int j = 0; j < Policy::vectors; ++j) {
    const int vector = static_cast<int>(threadIdx.x) + j * Policy::threads;
    if (vector >= vectors) continue;
    const int unit = first_vector + vector;
    const int row = tiles.by_row.quotient(unit);
    const int column = unit - row * length;
    const std::int64_t source = rows.source[row];
    const int from = source < 0 ? -1 : source_column(map, inner, tiles, column);
    loads[j] = task.outside;
    if (from >= 0) {
      loads[j] = *reinterpret_cast<const uint4*>(task.x + source + static_cast<std::int64_t>(from) * unit_bytes);
      if constexpr (Scaled) loads[j] = rescaled<true>(loads[j], task.ratio);
    }
    if constexpr (Masked) {
      const int channel = rows.first_channel[row] + tiles.by_pixel.remainder(column) * geometry.unit_channels;
      const int valid = (geometry.channels - channel) * (unit_bytes / geometry.unit_channels);
      loads[j] = Vector<std::int8_t, unit_bytes>{loads[j]}.first(valid).raw;
    }
  }
#pragma unroll
  for (int j = 0; j < Policy::vectors; ++j) {
    const int vector = static_cast<int>(threadIdx.x) + j * Policy::threads;
    if (vector < vectors) tile[first_vector + vector] = loads[j];
  }
}

}  // namespace detail

/// Units of all rows of a tile that a stream can count.
inline constexpr std::int64_t stream_capacity = (std::int64_t{1} << 31) - 65536;

/// The fewest rows that together are a multiple of 16 bytes.
[[nodiscard]] inline std::int64_t stream_rows(const Geometry& geometry) {
  const std::int64_t units = 16 / geometry.unit_bytes;
  return std::min(units / std::gcd(units, geometry.row_units()), geometry.rows);
}

[[nodiscard]] inline bool stream_fits(const Geometry& geometry) {
  return geometry.row_units() <= stream_capacity / stream_rows(geometry);
}

/// x of units smaller than 16 bytes lies anywhere, everything else at multiples of 16 bytes.
[[nodiscard]] inline Status run_stream(const PaddingTask& task, const DeviceTraits& device,
                                       const CudaContext& context) {
  using namespace detail;
  using Policy = StreamPolicy;
  const Geometry& geometry = task.geometry;
  const std::int64_t units = 16 / geometry.unit_bytes;
  const std::int64_t least_rows = stream_rows(geometry);
  const std::int64_t length = geometry.row_units();
  const std::int64_t all_vectors = ceil_divide(geometry.rows * length, units);
  // Small tensors are spread over the multiprocessors.
  std::int64_t block_vectors = Policy::threads * Policy::vectors;
  while (block_vectors > Policy::threads && all_vectors < block_vectors * device.multiprocessors * 2) {
    block_vectors -= Policy::threads;
  }
  const std::int64_t fitting = std::max<std::int64_t>(block_vectors * units / (least_rows * length), 1);
  StreamTiles tiles;
  tiles.rows = static_cast<int>(std::min({fitting * least_rows, Policy::most_rows / least_rows * least_rows,
                                          ceil_divide(geometry.rows, least_rows) * least_rows}));
  const std::int64_t tile_vectors = ceil_divide(tiles.rows * length, units);
  tiles.chunks = static_cast<int>(ceil_divide(tile_vectors, block_vectors));
  tiles.chunk_vectors = static_cast<int>(ceil_divide(tile_vectors, tiles.chunks));
  tiles.by_row = Divisor(static_cast<int>(length));
  tiles.by_inner = Divisor(static_cast<int>(geometry.inner));
  tiles.by_pixel = Divisor(geometry.pixel_units);
  const Grid grid{ceil_divide(geometry.rows, tiles.rows) * tiles.chunks, Policy::threads};
  const auto start = [&](auto kernel) { return launch("Padding stream", kernel, grid, context, task, tiles); };
  const bool scaled = task.ratio != 1;
  switch (geometry.unit_bytes) {
    case 1: return start(scaled ? pad_stream<1, true> : pad_stream<1, false>);
    case 2: return start(pad_stream<2, false>);
    case 4: return start(pad_stream<4, false>);
    default: break;
  }
  if (geometry.channels > 0) return start(scaled ? pad_units<true, true> : pad_units<false, true>);
  return start(scaled ? pad_units<true, false> : pad_units<false, false>);
}

}  // namespace graft

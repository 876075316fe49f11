// Padding with y as a stream of 16-byte stores, whatever the length of its rows: a tile of rows that begins and ends at
// a multiple of 16 bytes goes to one block or several. A vector inside a row is shifted out of two aligned loads. While
// those are under way, vectors that touch the ends of rows are put together element by element, by threads that sit
// side by side.
#pragma once

#include <cstdint>
#include <numeric>

#include "kernels/divisor.cuh"
#include "kernels/launch.cuh"
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
  static constexpr int long_rows = 384;  ///< Of a tile, at most.
  static constexpr int short_rows = 1024;
};

/// A stream and how it is cut into blocks, in units unless something else is said.
struct Stream {
  const std::byte* x = nullptr;
  std::byte* y = nullptr;
  std::int64_t x_bytes = 0;
  uint4 outside = {};
  float ratio = 1;

  int rows = 0;   ///< Of y.
  int row = 0;    ///< Length of one.
  int inner = 1;  ///< Units of a column.
  AxisMap<int> column = {};
  Divisor by_row = {};
  Divisor by_inner = {};

  int outer_rank = 0;
  int outer_extents[Geometry::max_outer] = {};
  Divisor by_outer[Geometry::max_outer] = {};
  AxisMap<int> outer_maps[Geometry::max_outer] = {};
  std::int64_t outer_strides[Geometry::max_outer] = {};  ///< In bytes of x.

  int tile_rows = 0;
  int chunks = 1;         ///< Blocks of a tile.
  int chunk_vectors = 0;  ///< Of a block.
  /// A vector that touches `head` units at a row's begin or `tail` at its end is put together.
  int head = 0;
  int tail = 0;
  int ends_of_row = 0;  ///< Most vectors that touch the end of a row and the begin of the next.
  Divisor by_ends = {};

  int channels = 0;
  int unit_channels = 0;
  int channel_axis = -1;
  Divisor by_pixel = {};
};

/// Where the rows of a tile come from.
template <int Count>
struct SourceRows {
  std::int64_t offset[Count + 1];  ///< From x, in bytes; -1 for a row of constants.
  int first_channel[Count + 1];    ///< Of channel-vector layouts.
};

/// All threads of a block, before a barrier. One row more than the tile has may be asked for.
template <int Count>
__device__ void find_rows(const Stream& stream, int first, int count, SourceRows<Count>& rows) {
  for (int r = static_cast<int>(threadIdx.x); r <= count; r += static_cast<int>(blockDim.x)) {
    int row = first + r;
    std::int64_t offset = 0;
    bool outside = false;
    int first_channel = 0;
    for (int axis = 0; axis < stream.outer_rank; ++axis) {
      const int quotient = stream.by_outer[axis].quotient(row);
      const int at = row - quotient * stream.outer_extents[axis];
      const int from = stream.outer_maps[axis](at);
      outside = outside || from < 0;
      offset += from * stream.outer_strides[axis];
      if (axis == stream.channel_axis) first_channel = at * 32;
      row = quotient;
    }
    rows.offset[r] = outside ? -1 : offset;
    rows.first_channel[r] = first_channel;
  }
}

template <int Unit>
using UnitOf = std::conditional_t<Unit == 1, std::uint8_t, std::conditional_t<Unit == 2, std::uint16_t, unsigned>>;

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
    high = make_uint4(0, 0, 0, 0);
    if (offset != 0) high = aligned[1];
  }
  /// Whether the aligned bytes that hold those of `address` lie in the tensor.
  [[nodiscard]] __device__ static bool may_start(const std::byte* address, const Stream& stream) {
    const std::uintptr_t first = reinterpret_cast<std::uintptr_t>(address) & ~std::uintptr_t{15};
    return first >= reinterpret_cast<std::uintptr_t>(stream.x) &&
           first + 32 <= reinterpret_cast<std::uintptr_t>(stream.x + stream.x_bytes);
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

/// The unit of x, counted in its row, that stands at one of y; -1 for the constant. Far: the pads reach further than
/// one turn.
template <bool Far>
__device__ int source_unit(const Stream& stream, int unit) {
  const auto map = [&](int column) { return Far ? stream.column(column) : stream.column.first_turn(column); };
  if (stream.inner == 1) return map(unit);
  const int column = stream.by_inner.quotient(unit);
  const int from = map(column);
  return from < 0 ? -1 : from * stream.inner + (unit - column * stream.inner);
}

/// A vector of y, from its first unit in the tile on, that reaches outside x or lies in two rows; in any number of them
/// if they are Short. The last one of y may not be full.
template <int Unit, bool Scaled, bool Far, bool Short, int Count>
__device__ void assemble(const Stream& stream, const SourceRows<Count>& rows, int first, int limit, std::byte* tile) {
  using Element = UnitOf<Unit>;
  constexpr int count = 16 / Unit;
  const int row = stream.by_row.quotient(first);
  const int at = first - row * stream.row;
  const std::int64_t here = rows.offset[row];
  const std::int64_t next = rows.offset[row + 1];
  unsigned words[4] = {};
  unsigned constants[4] = {};
#pragma unroll
  for (int e = 0; e < count; ++e) {
    const unsigned shift = static_cast<unsigned>(e * Unit % 4) * 8;
    int unit = at + e;
    std::int64_t source = here;
    if constexpr (Short) {
      const int further = stream.by_row.quotient(unit);
      unit -= further * stream.row;
      source = first + e < limit ? rows.offset[row + further] : -1;
    } else if (unit >= stream.row) {
      unit -= stream.row;
      source = next;
    }
    const int from = source_unit<Far>(stream, unit);
    if (from >= 0 && source >= 0 && first + e < limit) {
      const unsigned value = reinterpret_cast<const Element*>(stream.x + source)[from];
      words[e * Unit / 4] |= value << shift;
    } else {
      constants[e * Unit / 4] |= (0xFFFFFFFFU >> (32 - 8 * Unit)) << shift;
    }
  }
  const uint4 moved = rescaled<Scaled>(make_uint4(words[0], words[1], words[2], words[3]), stream.ratio);
  const uint4 result = make_uint4((moved.x & ~constants[0]) | (stream.outside.x & constants[0]),
                                  (moved.y & ~constants[1]) | (stream.outside.y & constants[1]),
                                  (moved.z & ~constants[2]) | (stream.outside.z & constants[2]),
                                  (moved.w & ~constants[3]) | (stream.outside.w & constants[3]));
  if (first + count <= limit) {
    *reinterpret_cast<uint4*>(tile + static_cast<std::int64_t>(first) * Unit) = result;
    return;
  }
  const unsigned kept[4] = {result.x, result.y, result.z, result.w};
#pragma unroll
  for (int e = 0; e < count; ++e) {
    const unsigned shift = static_cast<unsigned>(e * Unit % 4) * 8;
    if (first + e < limit) {
      reinterpret_cast<Element*>(tile)[first + e] = static_cast<Element>(kept[e * Unit / 4] >> shift);
    }
  }
}

/// A block's part of the stream.
struct StreamPart {
  int first_row;  ///< Of the tile.
  int rows;
  int limit;         ///< Units of the tile.
  int first_vector;  ///< In the tile.
  int vectors;
  std::byte* tile;

  template <int Unit>
  [[nodiscard]] static __device__ StreamPart of_block(const Stream& stream) {
    constexpr int count = 16 / Unit;
    const unsigned index = blockIdx.x / static_cast<unsigned>(stream.chunks);
    const int chunk = static_cast<int>(blockIdx.x - index * static_cast<unsigned>(stream.chunks));
    StreamPart part{};
    part.first_row = static_cast<int>(index) * stream.tile_rows;
    part.rows = ::min(stream.tile_rows, stream.rows - part.first_row);
    part.limit = part.rows * stream.row;
    part.first_vector = chunk * stream.chunk_vectors;
    part.vectors = ::min(stream.chunk_vectors, (part.limit + count - 1) / count - part.first_vector);
    part.tile = stream.y + static_cast<std::int64_t>(part.first_row) * stream.row * Unit;
    return part;
  }
};

/// The vectors of a block that touch the end of a row and the begin of the next, up to the end of the last.
template <int Unit, bool Scaled, bool Far, int Count>
__device__ void assemble_ends(const Stream& stream, const SourceRows<Count>& rows, const StreamPart& part) {
  constexpr int count = 16 / Unit;
  const int first_end = stream.by_row.quotient(part.first_vector * count);
  const int last_end = stream.by_row.quotient((part.first_vector + part.vectors) * count - 1) + 1;
  const int ends = (last_end - first_end + 1) * stream.ends_of_row;
  for (int i = static_cast<int>(threadIdx.x); i < ends; i += StreamPolicy::threads) {
    const int end = stream.by_ends.quotient(i);
    const int border = (first_end + end) * stream.row;
    const int first = ::max(::max(border - stream.tail, 0) / count, part.first_vector);
    const int vector = first + i - end * stream.ends_of_row;
    if (vector * count >= border + stream.head || vector >= part.first_vector + part.vectors) continue;
    assemble<Unit, Scaled, Far, false>(stream, rows, vector * count, part.limit, part.tile);
  }
}

template <int Unit, bool Scaled>
__global__ void __launch_bounds__(StreamPolicy::threads) pad_stream(const __grid_constant__ Stream stream) {
  using Policy = StreamPolicy;
  constexpr int count = 16 / Unit;
  __shared__ SourceRows<Policy::long_rows> rows;
  const StreamPart part = StreamPart::of_block<Unit>(stream);
  find_rows(stream, part.first_row, part.rows, rows);
  __syncthreads();

  ShiftedLoad<Unit> loads[Policy::vectors];
  bool loaded[Policy::vectors];
  unsigned others = 0;
#pragma unroll
  for (int j = 0; j < Policy::vectors; ++j) {
    loaded[j] = false;
    const int vector = static_cast<int>(threadIdx.x) + j * Policy::threads;
    const int unit = (part.first_vector + vector) * count;
    const int row = stream.by_row.quotient(unit);
    const int at = unit - row * stream.row;
    if (vector >= part.vectors || at < stream.head || at + count > stream.row - stream.tail) continue;
    const std::int64_t source = rows.offset[row];
    const std::byte* address =
        stream.x + source + static_cast<std::int64_t>(at - stream.column.begin * stream.inner) * Unit;
    loaded[j] = source >= 0 && ShiftedLoad<Unit>::may_start(address, stream);
    if (loaded[j]) loads[j].start(address);
    others |= loaded[j] ? 0U : 1U << static_cast<unsigned>(j);
  }
#pragma unroll
  for (int j = 0; j < Policy::vectors; ++j) {
    const int unit = (part.first_vector + static_cast<int>(threadIdx.x) + j * Policy::threads) * count;
    if (!loaded[j]) continue;
    *reinterpret_cast<uint4*>(part.tile + static_cast<std::int64_t>(unit) * Unit) =
        rescaled<Scaled>(loads[j].finish(), stream.ratio);
  }
  if (stream.column.period > 0) {
    assemble_ends<Unit, Scaled, true>(stream, rows, part);
  } else {
    assemble_ends<Unit, Scaled, false>(stream, rows, part);
  }
  // Rows of constants, and vectors so near to the ends of x that the aligned loads would leave it.
  for (int vector = static_cast<int>(threadIdx.x); others != 0; others >>= 1U, vector += Policy::threads) {
    if ((others & 1U) == 0) continue;
    assemble<Unit, Scaled, false, false>(stream, rows, (part.first_vector + vector) * count, part.limit, part.tile);
  }
}

/// As pad_stream, where rows are so short that all vectors are put together.
template <int Unit, bool Scaled>
__global__ void __launch_bounds__(StreamPolicy::threads) pad_short_rows(const __grid_constant__ Stream stream) {
  __shared__ SourceRows<StreamPolicy::short_rows> rows;
  const StreamPart part = StreamPart::of_block<Unit>(stream);
  find_rows(stream, part.first_row, part.rows, rows);
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < part.vectors; i += StreamPolicy::threads) {
    const int first = (part.first_vector + i) * (16 / Unit);
    if (stream.column.period > 0) {
      assemble<Unit, Scaled, true, true>(stream, rows, first, part.limit, part.tile);
    } else {
      assemble<Unit, Scaled, false, true>(stream, rows, first, part.limit, part.tile);
    }
  }
}

/// As pad_stream, of units of 16 bytes. Masked: the last channels of a channel-vector layout are none.
template <bool Scaled, bool Masked>
__global__ void __launch_bounds__(StreamPolicy::threads) pad_units(const __grid_constant__ Stream stream) {
  using Policy = StreamPolicy;
  constexpr int unit_bytes = 16;
  __shared__ SourceRows<Policy::short_rows> rows;
  const StreamPart part = StreamPart::of_block<unit_bytes>(stream);
  find_rows(stream, part.first_row, part.rows, rows);
  __syncthreads();
  uint4 loads[Policy::vectors];
  bool inside[Policy::vectors];
  int valid[Policy::vectors];
#pragma unroll
  for (int j = 0; j < Policy::vectors; ++j) {
    const int vector = static_cast<int>(threadIdx.x) + j * Policy::threads;
    inside[j] = false;
    if (vector >= part.vectors) continue;
    const int unit = part.first_vector + vector;
    const int row = stream.by_row.quotient(unit);
    const int at = unit - row * stream.row;
    const std::int64_t source = rows.offset[row];
    const int from = stream.column.period > 0 ? source_unit<true>(stream, at) : source_unit<false>(stream, at);
    inside[j] = from >= 0 && source >= 0;
    if (inside[j]) loads[j] = reinterpret_cast<const uint4*>(stream.x + source)[from];
    if constexpr (Masked) {
      const int channel = rows.first_channel[row] + stream.by_pixel.remainder(at) * stream.unit_channels;
      valid[j] = (stream.channels - channel) * (unit_bytes / stream.unit_channels);
    }
  }
#pragma unroll
  for (int j = 0; j < Policy::vectors; ++j) {
    const int vector = static_cast<int>(threadIdx.x) + j * Policy::threads;
    if (vector >= part.vectors) continue;
    uint4 result = inside[j] ? rescaled<Scaled>(loads[j], stream.ratio) : stream.outside;
    if constexpr (Masked) result = Vector<std::int8_t, unit_bytes>{result}.first(valid[j]).raw;
    reinterpret_cast<uint4*>(part.tile)[part.first_vector + vector] = result;
  }
}

}  // namespace detail

/// The fewest rows that together are a multiple of 16 bytes.
[[nodiscard]] inline std::int64_t stream_rows(const Geometry& geometry) {
  const std::int64_t units = 16 / geometry.unit_bytes;
  return std::min(units / std::gcd(units, geometry.row_units()), geometry.rows);
}

/// Rows, and units of a tile, are counted in 31 bits, and so is what a mirror of a row is calculated with.
[[nodiscard]] inline bool stream_fits(const Geometry& geometry) {
  constexpr std::int64_t most = std::int64_t{1} << 30;
  bool fits = geometry.rows <= most && geometry.row_units() <= most / stream_rows(geometry) &&
              geometry.column.size * geometry.inner <= most;
  for (int axis = 0; axis < geometry.outer_rank; ++axis) fits = fits && geometry.outer_maps[axis].size <= most;
  return fits;
}

/// x of units smaller than 16 bytes lies anywhere, everything else at multiples of 16 bytes.
[[nodiscard]] inline Status run_stream(const PaddingTask& task, const DeviceTraits& device,
                                       const CudaContext& context) {
  using namespace detail;
  using Policy = StreamPolicy;
  const Geometry& geometry = task.geometry;
  const auto to_int = [](std::int64_t value) { return static_cast<int>(value); };
  Stream stream{.x = task.x, .y = task.y, .x_bytes = task.x_bytes, .outside = task.outside, .ratio = task.ratio};
  stream.rows = to_int(geometry.rows);
  stream.row = to_int(geometry.row_units());
  stream.inner = to_int(geometry.inner);
  stream.column = geometry.column.as_int();
  stream.by_row = Divisor(stream.row);
  stream.by_inner = Divisor(stream.inner);
  stream.outer_rank = geometry.outer_rank;
  for (int axis = 0; axis < geometry.outer_rank; ++axis) {
    stream.outer_extents[axis] = to_int(geometry.outer_extents[axis]);
    stream.by_outer[axis] = Divisor(stream.outer_extents[axis]);
    stream.outer_maps[axis] = geometry.outer_maps[axis].as_int();
    stream.outer_strides[axis] = geometry.outer_strides[axis] * geometry.unit_bytes;
  }
  stream.channels = geometry.channels;
  stream.unit_channels = geometry.unit_channels;
  stream.channel_axis = geometry.channel_axis;
  stream.by_pixel = Divisor(geometry.pixel_units);

  const std::int64_t units = 16 / geometry.unit_bytes;
  const std::int64_t least_rows = stream_rows(geometry);
  const std::int64_t all_vectors = ceil_divide(geometry.rows * stream.row, units);
  // Small tensors are spread over the multiprocessors.
  std::int64_t block_vectors = Policy::threads * Policy::vectors;
  while (block_vectors > Policy::threads && all_vectors < block_vectors * device.multiprocessors * 2) {
    block_vectors -= Policy::threads;
  }
  // Without padding and with rows of whole vectors, none is put together.
  const AxisMap<int>& map = stream.column;
  const int after = stream.row - (map.size + map.begin) * stream.inner;
  const bool whole = stream.row % units == 0 && map.begin <= 0 && after <= 0;
  stream.head = std::max(map.begin * stream.inner, whole ? 0 : 1);
  stream.tail = std::max(after, whole ? 0 : 1);
  const bool short_rows = stream.row - stream.head - stream.tail < 2 * units;

  const std::int64_t most_rows = short_rows || units == 1 ? Policy::short_rows : Policy::long_rows;
  const std::int64_t fitting =
      std::max<std::int64_t>(std::min(block_vectors * units / stream.row, most_rows) / least_rows, 1);
  stream.tile_rows = to_int(std::min(fitting, ceil_divide(geometry.rows, least_rows)) * least_rows);
  const std::int64_t tile_vectors = ceil_divide(std::int64_t{stream.tile_rows} * stream.row, units);
  stream.chunks = to_int(ceil_divide(tile_vectors, block_vectors));
  stream.chunk_vectors = to_int(ceil_divide(tile_vectors, stream.chunks));
  stream.ends_of_row = whole ? 0 : to_int(ceil_divide(stream.head + stream.tail - 1, units) + 1);
  stream.ends_of_row = std::min(stream.ends_of_row, stream.chunk_vectors);
  stream.by_ends = Divisor(std::max(stream.ends_of_row, 1));

  const Grid grid{ceil_divide(geometry.rows, stream.tile_rows) * stream.chunks, Policy::threads};
  const auto start = [&](auto kernel) { return launch("Padding stream", kernel, grid, context, stream); };
  const bool scaled = task.ratio != 1;
  switch (geometry.unit_bytes) {
    case 1:
      if (short_rows) return start(scaled ? pad_short_rows<1, true> : pad_short_rows<1, false>);
      return start(scaled ? pad_stream<1, true> : pad_stream<1, false>);
    case 2: return start(short_rows ? pad_short_rows<2, false> : pad_stream<2, false>);
    case 4: return start(short_rows ? pad_short_rows<4, false> : pad_stream<4, false>);
    default: break;
  }
  if (geometry.channels > 0) return start(scaled ? pad_units<true, true> : pad_units<false, true>);
  return start(scaled ? pad_units<true, false> : pad_units<false, false>);
}

}  // namespace graft

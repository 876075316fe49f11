// Padding by tiles of y in shared memory. Elements that are contiguous in x are shifted into place in words of 8 bytes,
// and other elements are copied one by one. A tile is stored to memory in whole vectors, wherever its rows begin.
#pragma once

#include <algorithm>

#include "ops/padding/lines.cuh"

namespace graft::ops {
namespace detail {

/// The sizes of tiles and of the work per thread, tuned on an H200.
struct TilesPolicy {
  static constexpr int threads = 256;
  static constexpr int bytes = 16384;  ///< The maximum size of a tile in bytes.
  static constexpr int rows = 256;     ///< The maximum number of rows in a tile.
  static constexpr int batch = 4;      ///< The number of words or elements that a thread loads at a time.
  static constexpr int word = 8;       ///< The size of a word in bytes.
};

struct TilesTask {
  const std::byte* x;
  std::byte* y;
  std::int64_t units;  ///< The number of units in y.
  unsigned outside;
  int tile_units;
  int row;  ///< The number of units in a row. Positions in a row are in units too.
  Divisor by_row;
  int words_from;  ///< The position in a row from which words may lie inside the row, up to words_to.
  int words_to;
  int words;  ///< The maximum number of words of a row in a tile.
  Divisor by_words;
  int left;       ///< Elements before this one are copied one by one, except those in a word.
  int right;      ///< Elements from this one on are copied one by one, except those in a word.
  int ends;       ///< The number of elements that are copied one by one.
  int end_lanes;  ///< The number of threads that share the ends of one row.
  int end_rows;   ///< The number of rows whose ends are copied at a time.
  Divisor by_end_lanes;
  Columns columns;
  AnyLines lines;
};

struct alignas(16) TileRow {
  const std::byte* source;  ///< The address from which byte 0 of the tile would be copied; null for constants.
  int words_from;           ///< The beginning of the words, in bytes of the tile.
  int words_to;
};

/// A tile, and the rows of which it contains a part.
struct Tile {
  std::int64_t begin;  ///< The first unit of y in the tile.
  int count;
  int first_row;
  int skipped;  ///< The number of units of the first row that lie before the tile.
  int rows;

  __device__ explicit Tile(const TilesTask& task) {
    begin = static_cast<std::int64_t>(blockIdx.x) * task.tile_units;
    count = static_cast<int>(::min(static_cast<std::int64_t>(task.tile_units), task.units - begin));
    first_row =
        task.units <= 0x7FFFFFFF ? task.by_row.quotient(static_cast<int>(begin)) : static_cast<int>(begin / task.row);
    skipped = static_cast<int>(begin - static_cast<std::int64_t>(first_row) * task.row);
    rows = task.by_row.quotient(skipped + count - 1) + 1;
  }
};

/// Returns the 8 bytes that begin `offset` bytes after the first byte of `low`; `high` contains the 8 bytes after
/// `low`. `offset` is a multiple of Unit and less than 8.
template <int Unit>
__device__ uint2 shifted_word(const uint2& low, const uint2& high, unsigned offset) {
  const bool half = (offset & 4U) != 0;
  const unsigned a = half ? low.y : low.x;
  const unsigned b = half ? high.x : low.y;
  const unsigned c = half ? high.y : high.x;
  const unsigned bits = (offset & 3U) * 8;
  return make_uint2(__funnelshift_r(a, b, bits), __funnelshift_r(b, c, bits));
}

template <int Unit>
__device__ void fill_words(const TilesTask& task, int rows, const TileRow* table, std::byte* tile) {
  using Policy = TilesPolicy;
  const int items = rows * task.words;
  for (int base = static_cast<int>(threadIdx.x); base < items; base += Policy::threads * Policy::batch) {
    uint2 low[Policy::batch];
    uint2 high[Policy::batch];
    unsigned offsets[Policy::batch];
    int to[Policy::batch];
#pragma unroll
    for (int j = 0; j < Policy::batch; ++j) {
      const int i = ::min(base + j * Policy::threads, items - 1);
      const int r = task.by_words.quotient(i);
      const TileRow row = table[r];
      const int at = row.words_from + (i - r * task.words) * Policy::word;
      to[j] = at < row.words_to ? at : -1;
      const bool moved = at < row.words_to && row.source != nullptr;
      const auto address =
          reinterpret_cast<std::uint64_t>(row.source) + static_cast<std::uint64_t>(static_cast<std::int64_t>(at));
      const auto* aligned = reinterpret_cast<const uint2*>(address & ~std::uint64_t{Policy::word - 1});
      offsets[j] = static_cast<unsigned>(address) & (Policy::word - 1U);
      low[j] = high[j] = make_uint2(task.outside, task.outside);
      if (moved) low[j] = __ldg(aligned);
      if (moved && offsets[j] != 0) high[j] = __ldg(aligned + 1);
    }
#pragma unroll
    for (int j = 0; j < Policy::batch; ++j) {
      if (to[j] >= 0) *reinterpret_cast<uint2*>(tile + to[j]) = shifted_word<Unit>(low[j], high[j], offsets[j]);
    }
  }
}

template <int Unit>
__device__ void fill_ends(const TilesTask& task, const Tile& part, const TileRow* table, std::byte* tile) {
  using Policy = TilesPolicy;
  using Element = UnitOf<Unit>;
  const int first_row = task.by_end_lanes.quotient(static_cast<int>(threadIdx.x));
  if (first_row >= task.end_rows) return;
  for (int end = static_cast<int>(threadIdx.x) - first_row * task.end_lanes; end < task.ends; end += task.end_lanes) {
    const int unit = end < task.left ? end : end - task.left + task.right;
    const int from = task.columns.source<true>(unit);
    const std::int64_t shift = static_cast<std::int64_t>(from) + task.columns.map.begin * task.columns.inner;
    for (int base = first_row; base < part.rows; base += Policy::batch * task.end_rows) {
      Element values[Policy::batch];
      int to[Policy::batch];
#pragma unroll
      for (int j = 0; j < Policy::batch; ++j) {
        const int r = base + j * task.end_rows;
        to[j] = -1;
        values[j] = static_cast<Element>(task.outside);
        if (r >= part.rows) continue;
        const TileRow row = table[r];
        const int row_begin = r * task.row - part.skipped;
        if (row_begin + unit < 0 || row_begin + unit >= part.count) continue;
        const int at = (row_begin + unit) * Unit;
        if (at >= row.words_from && at < row.words_to) continue;
        to[j] = at;
        if (from < 0 || row.source == nullptr) continue;
        values[j] = __ldg(reinterpret_cast<const Element*>(row.source) + (row_begin + shift));
      }
#pragma unroll
      for (int j = 0; j < Policy::batch; ++j) {
        if (to[j] >= 0) *reinterpret_cast<Element*>(tile + to[j]) = values[j];
      }
    }
  }
}

template <int Unit>
__global__ void __launch_bounds__(TilesPolicy::threads) pad_tiles(const __grid_constant__ TilesTask task) {
  using Policy = TilesPolicy;
  constexpr int word_units = Policy::word / Unit;
  __shared__ alignas(16) std::byte tile[Policy::bytes];
  __shared__ TileRow table[Policy::rows];
  const Tile part(task);
  for (int r = static_cast<int>(threadIdx.x); r < part.rows; r += Policy::threads) {
    std::int64_t offset;
    int channel;
    const bool inside = task.lines.find(part.first_row + r, offset, channel);
    const int row_begin = r * task.row - part.skipped;
    TileRow row{};
    if (inside) {
      row.source =
          task.x +
          (offset - (static_cast<std::int64_t>(row_begin) + task.columns.map.begin * task.columns.inner) * Unit);
    }
    row.words_from = ::max((row_begin + task.words_from + word_units - 1) & ~(word_units - 1), 0) * Unit;
    row.words_to = ::min((row_begin + task.words_to) & ~(word_units - 1), task.tile_units) * Unit;
    table[r] = row;
  }
  __syncthreads();
  fill_words<Unit>(task, part.rows, table, tile);
  fill_ends<Unit>(task, part, table, tile);
  __syncthreads();
  std::byte* const y = task.y + part.begin * Unit;
  const int bytes = part.count * Unit;
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x) * 16; i + 16 <= bytes; i += Policy::threads * 16) {
    *reinterpret_cast<uint4*>(y + i) = *reinterpret_cast<const uint4*>(tile + i);
  }
  const int tail = bytes / 16 * 16 + static_cast<int>(threadIdx.x) * Unit;
  if (tail < bytes) *reinterpret_cast<UnitOf<Unit>*>(y + tail) = *reinterpret_cast<const UnitOf<Unit>*>(tile + tail);
}

/// The range of a row of y in which words of 8 bytes are copied from x. Positions are in units.
struct TilesPlan {
  std::int64_t word_units = 0;
  std::int64_t from = 0;  ///< The position from which words may lie inside a row, up to `to`.
  std::int64_t to = 0;

  explicit TilesPlan(const PaddingTask& task) : word_units(TilesPolicy::word / task.geometry.unit_bytes) {
    const Geometry& geometry = task.geometry;
    // Aligned loads of the outermost elements of x must not leave x.
    const bool whole = is_aligned(task.x, TilesPolicy::word) && task.x_bytes % TilesPolicy::word == 0;
    const std::int64_t guard = whole ? 0 : word_units - 1;
    const AxisMap<std::int64_t>& map = geometry.column;
    from = std::max<std::int64_t>(map.begin, 0) * geometry.inner + guard;
    to = std::min(map.begin + map.size, geometry.columns) * geometry.inner - guard;
  }
};

template <int Unit>
[[nodiscard]] Status start_tiles(const PaddingTask& task, const CudaContext& context) {
  using Policy = TilesPolicy;
  constexpr std::int64_t per_vector = 16 / Unit;
  const Geometry& geometry = task.geometry;
  const TilesPlan plan(task);
  const auto to_int = [](std::int64_t value) { return static_cast<int>(value); };
  const std::int64_t row = geometry.row_units();
  const std::int64_t most_units = (Policy::rows - 1) * row / per_vector * per_vector;
  const int tile_units = to_int(std::min<std::int64_t>(Policy::bytes / Unit, most_units));
  const int words = to_int(std::min((plan.to - plan.from) / plan.word_units, tile_units / plan.word_units));
  const std::int64_t left = plan.from + plan.word_units - 1;
  const std::int64_t right = plan.to - (plan.word_units - 1);
  const int ends = to_int(left + row - right);
  const int end_lanes = std::min(ends, Policy::threads);
  const TilesTask own{.x = task.x,
                      .y = task.y,
                      .units = geometry.rows * row,
                      .outside = task.outside,
                      .tile_units = tile_units,
                      .row = to_int(row),
                      .by_row = Divisor(to_int(row)),
                      .words_from = to_int(plan.from),
                      .words_to = to_int(plan.to),
                      .words = words,
                      .by_words = Divisor(words),
                      .left = to_int(left),
                      .right = to_int(right),
                      .ends = ends,
                      .end_lanes = end_lanes,
                      .end_rows = Policy::threads / end_lanes,
                      .by_end_lanes = Divisor(end_lanes),
                      .columns = Columns(geometry),
                      .lines = AnyLines(geometry)};
  const Grid grid{ceil_divide(own.units, tile_units), Policy::threads};
  return launch("Padding tiles", pad_tiles<Unit>, grid, context, own);
}

}  // namespace detail

/// Returns whether run_tiles() supports the problem: the rows are long enough to contain words of 8 bytes, and units
/// have 2 or 4 bytes.
[[nodiscard]] inline bool tiles_fit(const PaddingTask& task) {
  const Geometry& geometry = task.geometry;
  if (geometry.unit_bytes != 2 && geometry.unit_bytes != 4) return false;
  const detail::TilesPlan plan(task);
  return is_aligned(task.y, 16) && plan.to - plan.from >= 16 / geometry.unit_bytes + 2 * plan.word_units;
}

[[nodiscard]] inline Status run_tiles(const PaddingTask& task, const CudaContext& context) {
  if (task.geometry.unit_bytes == 2) return detail::start_tiles<2>(task, context);
  return detail::start_tiles<4>(task, context);
}

}  // namespace graft::ops

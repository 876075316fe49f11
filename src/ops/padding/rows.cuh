// Padding row by row, in vectors at multiples of 16 bytes of y. Vectors inside a row are shifted out of two aligned
// loads, by neighboring lanes of a warp. Vectors around the border between two rows are assembled element by element,
// one lane per vector, for all rows of a warp at a time.
#pragma once

#include <algorithm>
#include <limits>

#include "ops/padding/lines.cuh"

namespace graft::ops {
namespace detail {

/// The sizes of the work per thread and block, tuned on an H200.
struct RowsPolicy {
  static constexpr int threads = 256;
  static constexpr int warps = threads / 32;
  static constexpr int slots = 2;  ///< The number of vectors that a thread loads at a time.
  /// The maximum number of 16-byte vectors that one lane stores in one part of a row. Longer rows are divided into
  /// parts, one per warp.
  static constexpr int steps = 8;
  static constexpr int entries = 1024;  ///< The largest size of the table of elements around a border.
};

/// The arguments of pad_rows. Bytes are counted from the beginning of a row of y, unless stated otherwise.
struct RowsTask {
  const std::byte* x;
  std::byte* y;
  float ratio;
  unsigned outside;
  int rows;
  int row_bytes;
  int vectors_from;  ///< The byte from which vectors may lie inside a row, up to vectors_to.
  int vectors_to;
  int shift;  ///< The offset of a byte in its row of y minus its offset in the row of x.

  int warp_rows;  ///< The number of rows that a warp stores, at most 30.
  int lanes_log;  ///< The binary logarithm of the number of lanes that store one row.
  int steps;      ///< The number of vectors that each lane stores in a row.
  int parts;      ///< The number of parts into which a row is divided; each warp stores one part.
  Divisor by_parts;

  int border_vectors;  ///< The maximum number of vectors around the beginning of a row.
  Divisor by_border_vectors;
  int table_from;  ///< The first unit of the table, counted from the border between two rows.
  int table_to;    ///< The unit after the last unit of the table.
  int row;         ///< The number of units in a row.
  Columns columns;
  AnyLines lines;
};

/// Loads 16 bytes from an address that is a multiple of Unit, by loading the two aligned vectors of 16 bytes that
/// contain these bytes.
template <int Unit>
struct ShiftedLoad {
  uint4 low;
  uint4 high;
  unsigned offset;

  __device__ void start(std::uint64_t address) {
    offset = static_cast<unsigned>(address) & 15U;
    const auto* aligned = reinterpret_cast<const uint4*>(address & ~std::uint64_t{15});
    low = __ldg(aligned);
    high = make_uint4(0, 0, 0, 0);
    if (offset != 0) high = __ldg(aligned + 1);
  }
  [[nodiscard]] __device__ uint4 finish() const {
    unsigned w[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
    for (int i = 0; i < 6; ++i) w[i] = (offset & 8U) != 0 ? w[i + 2] : w[i];
#pragma unroll
    for (int i = 0; i < 5; ++i) w[i] = (offset & 4U) != 0 ? w[i + 1] : w[i];
    if constexpr (Unit < 4) {
#pragma unroll
      for (int i = 0; i < 4; ++i) w[i] = __funnelshift_r(w[i], w[i + 1], (offset & 3U) * 8);
    }
    return make_uint4(w[0], w[1], w[2], w[3]);
  }
};

/// The rows, or the part of a row, that one warp stores.
struct WarpRows {
  int first;  ///< The first row of y.
  int count;
  int part;  ///< The index of the part of the row.
  /// The address in x from which byte 0 of a row of y would be copied if x extended that far; 0 for a row of constants.
  /// Lane i holds the address for row `first` + i - 1.
  std::uint64_t source;
};

/// Stores the vectors of 16 bytes that lie inside a row of y, between `vectors_from` and `vectors_to`.
template <int Unit, bool Scaled>
__device__ void store_insides(const RowsTask& task, const WarpRows& rows) {
  constexpr int slots = RowsPolicy::slots;
  const int lane = static_cast<int>(threadIdx.x) & 31;
  const int row_step = 32 >> task.lanes_log;
  const int lane_row = lane >> task.lanes_log;
  std::byte* const y = task.y + static_cast<std::int64_t>(rows.first + lane_row) * task.row_bytes;
  const auto begin =
      static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(y)) + static_cast<unsigned>(task.vectors_from);
  const int vector = (lane & ((1 << task.lanes_log) - 1)) + rows.part * task.steps * 32;
  for (int step = 0; step < task.steps; ++step) {
    const int lane_at = task.vectors_from + (vector + step * 32) * 16;
    for (int row = 0; row < rows.count; row += row_step * slots) {
      ShiftedLoad<Unit> loads[slots];
      bool inside[slots];
      int to[slots];
#pragma unroll
      for (int j = 0; j < slots; ++j) {
        const int each = row + j * row_step;
        const int at = lane_at + static_cast<int>((0U - begin - static_cast<unsigned>(each * task.row_bytes)) & 15U);
        const std::uint64_t source = __shfl_sync(0xFFFFFFFFU, rows.source, lane_row + each + 1);
        const bool stored = lane_row + each < rows.count && at + 16 <= task.vectors_to;
        to[j] = stored ? each * task.row_bytes + at : -1;
        inside[j] = stored && source != 0;
        if (inside[j]) loads[j].start(source + static_cast<std::uint64_t>(static_cast<std::int64_t>(at)));
      }
#pragma unroll
      for (int j = 0; j < slots; ++j) {
        if (to[j] < 0) continue;
        uint4 result = make_uint4(task.outside, task.outside, task.outside, task.outside);
        if (inside[j]) {
          result = loads[j].finish();
          if constexpr (Scaled) result = rescaled(result, task.ratio);
        }
        *reinterpret_cast<uint4*>(y + to[j]) = result;
      }
    }
  }
}

inline constexpr int nowhere = std::numeric_limits<int>::min();

/// Stores the vectors of 16 bytes around the beginnings of rows, and around the end of the last row.
template <int Unit, bool Scaled>
__device__ void store_borders(const RowsTask& task, const WarpRows& rows, const int* table) {
  using Element = UnitOf<Unit>;
  constexpr int count = 16 / Unit;
  const bool last = rows.first + rows.count == task.rows;
  const int items = (rows.count + (last ? 1 : 0)) * task.border_vectors;
  const int tail = task.row_bytes - task.vectors_to;
  for (int done = 0; done < items; done += 32) {
    const int item = done + (static_cast<int>(threadIdx.x) & 31);
    const int i = task.by_border_vectors.quotient(item);
    const std::uint64_t previous = __shfl_sync(0xFFFFFFFFU, rows.source, i);
    const std::uint64_t next = __shfl_sync(0xFFFFFFFFU, rows.source, i + 1);
    const int row = rows.first + i;
    // y is aligned to 16 bytes.
    const unsigned row_begin = static_cast<unsigned>(row) * static_cast<unsigned>(task.row_bytes);
    const int before = row == 0 ? 0 : tail + static_cast<int>((row_begin - static_cast<unsigned>(tail)) & 15U);
    const int behind =
        row == task.rows
            ? 0
            : task.vectors_from + static_cast<int>((0U - row_begin - static_cast<unsigned>(task.vectors_from)) & 15U);
    const int at = (item - i * task.border_vectors) * 16 - before;
    if (item >= items || at >= behind) continue;
    const int unit = at / Unit;
    const int* entries = table + (unit - task.table_from);
    unsigned words[4] = {};
    unsigned constants = 0;  // One bit for each element.
#pragma unroll
    for (int e = 0; e < count; ++e) {
      const int offset = entries[e];
      const std::uint64_t source = unit + e < 0 ? previous : next;
      unsigned value = static_cast<Element>(task.outside);
      if (offset != nowhere && source != 0) {
        value = __ldg(
            reinterpret_cast<const Element*>(source + static_cast<std::uint64_t>(static_cast<std::int64_t>(offset))));
      } else {
        constants |= 1U << static_cast<unsigned>(e);
      }
      words[e * Unit / 4] |= value << static_cast<unsigned>(e * Unit % 4 * 8);
    }
    uint4 result = make_uint4(words[0], words[1], words[2], words[3]);
    if constexpr (Scaled) {
      result = rescaled(result, task.ratio);
      if (constants != 0) {
        unsigned scaled[4] = {result.x, result.y, result.z, result.w};
#pragma unroll
        for (unsigned e = 0; e < count; ++e) {
          const unsigned mask = (constants >> e & 1U) != 0 ? 0xFFU << (e % 4 * 8) : 0U;
          scaled[e / 4] = (scaled[e / 4] & ~mask) | (task.outside & mask);
        }
        result = make_uint4(scaled[0], scaled[1], scaled[2], scaled[3]);
      }
    }
    std::byte* const to = task.y + (static_cast<std::int64_t>(row) * task.row_bytes + at);
    if (row < task.rows || at + 16 <= 0) {
      *reinterpret_cast<uint4*>(to) = result;
      continue;
    }
    const unsigned kept[4] = {result.x, result.y, result.z, result.w};
#pragma unroll
    for (int e = 0; e < count; ++e) {
      if (unit + e < 0) {
        reinterpret_cast<Element*>(to)[e] =
            static_cast<Element>(kept[e * Unit / 4] >> static_cast<unsigned>(e * Unit % 4 * 8));
      }
    }
  }
}

template <int Unit, bool Scaled>
__global__ void __launch_bounds__(RowsPolicy::threads) pad_rows(const __grid_constant__ RowsTask task) {
  using Policy = RowsPolicy;
  __shared__ int table[Policy::entries];
  const int lane = static_cast<int>(threadIdx.x) & 31;
  const int warp = static_cast<int>(blockIdx.x * Policy::warps + threadIdx.x / 32);
  const int group = task.by_parts.quotient(warp);
  WarpRows rows{};
  rows.first = group * task.warp_rows;
  rows.count = ::min(task.warp_rows, task.rows - rows.first);
  rows.part = warp - group * task.parts;
  if (lane < rows.count + 2) {
    std::int64_t offset;
    int channel;
    const bool inside = task.lines.find(::min(::max(rows.first + lane - 1, 0), task.rows - 1), offset, channel);
    if (inside)
      rows.source = reinterpret_cast<std::uintptr_t>(task.x) + static_cast<std::uint64_t>(offset - task.shift);
  }
  for (int i = static_cast<int>(threadIdx.x); i < task.table_to - task.table_from; i += Policy::threads) {
    const int unit = i + task.table_from;
    const int from = task.columns.source<true>(unit < 0 ? unit + task.row : unit);
    table[i] = from < 0 ? nowhere : from * Unit + task.shift;
  }
  __syncthreads();
  if (rows.count <= 0) return;
  store_insides<Unit, Scaled>(task, rows);
  if (rows.part == 0) store_borders<Unit, Scaled>(task, rows, table);
}

/// The division of rows into vectors inside a row and around borders, for units smaller than 16 bytes. Positions are
/// counted in units from the beginning of a row of y.
struct RowsPlan {
  std::int64_t per_vector = 0;
  std::int64_t from = 0;  ///< The position from which vectors may lie inside a row, up to `to`.
  std::int64_t to = 0;
  std::int64_t border = 0;  ///< The maximum number of units in the vectors around a border.

  explicit RowsPlan(const PaddingTask& task) : per_vector(16 / task.geometry.unit_bytes) {
    const Geometry& geometry = task.geometry;
    // Aligned loads of the outermost elements of x must not leave x.
    const std::int64_t guard = is_aligned(task.x, 16) && task.x_bytes % 16 == 0 ? 0 : per_vector - 1;
    const AxisMap<std::int64_t>& map = geometry.column;
    from = std::max<std::int64_t>(map.begin, 0) * geometry.inner + guard;
    to = std::min(map.begin + map.size, geometry.columns) * geometry.inner - guard;
    border = from + geometry.row_units() - to + 2 * (per_vector - 1);
  }
  [[nodiscard]] std::int64_t vectors() const { return (to - from) / per_vector; }
};

template <int Unit, bool Scaled>
[[nodiscard]] Status start_rows(const PaddingTask& task, const CudaContext& context) {
  using Policy = RowsPolicy;
  const Geometry& geometry = task.geometry;
  const RowsPlan plan(task);
  const auto to_int = [](std::int64_t value) { return static_cast<int>(value); };
  int lanes_log = 2;
  while (lanes_log < 5 && (std::int64_t{1} << lanes_log) < plan.vectors()) ++lanes_log;
  const std::int64_t row_steps = ceil_divide(plan.vectors(), 32);
  const int steps = to_int(std::min<std::int64_t>(row_steps, Policy::steps));
  const int parts = to_int(ceil_divide(row_steps, steps));
  const int warp_rows = lanes_log == 2 ? 24 : steps == 1 ? 16 : steps < 4 ? 8 : 4;
  const std::int64_t warps = ceil_divide(geometry.rows, warp_rows) * parts;
  const int border_vectors = to_int(plan.border / plan.per_vector);
  const RowsTask own{.x = task.x,
                     .y = task.y,
                     .ratio = task.ratio,
                     .outside = task.outside,
                     .rows = to_int(geometry.rows),
                     .row_bytes = to_int(geometry.row_units() * Unit),
                     .vectors_from = to_int(plan.from * Unit),
                     .vectors_to = to_int(plan.to * Unit),
                     .shift = to_int(geometry.column.begin * geometry.inner * Unit),
                     .warp_rows = warp_rows,
                     .lanes_log = lanes_log,
                     .steps = steps,
                     .parts = parts,
                     .by_parts = Divisor(parts),
                     .border_vectors = border_vectors,
                     .by_border_vectors = Divisor(border_vectors),
                     .table_from = to_int(plan.to - geometry.row_units() - (plan.per_vector - 1)),
                     .table_to = to_int(plan.from + plan.per_vector - 1),
                     .row = to_int(geometry.row_units()),
                     .columns = Columns(geometry),
                     .lines = AnyLines(geometry)};
  const Grid grid{ceil_divide(warps, Policy::warps), Policy::threads};
  return launch("Padding rows", pad_rows<Unit, Scaled>, grid, context, own);
}

}  // namespace detail

/// Returns whether run_rows() supports the problem: the rows are long enough, and the vectors around their borders fit
/// into the table.
[[nodiscard]] inline bool rows_fit(const PaddingTask& task) {
  constexpr std::int64_t most_bytes = std::int64_t{1} << 30;
  const Geometry& geometry = task.geometry;
  if (geometry.unit_bytes == 16 || !is_aligned(task.y, 16)) return false;
  if (geometry.row_units() * geometry.unit_bytes > most_bytes) return false;
  const detail::RowsPlan plan(task);
  return plan.to - plan.from > 2 * (plan.per_vector - 1) && plan.border <= detail::RowsPolicy::entries;
}

[[nodiscard]] inline Status run_rows(const PaddingTask& task, const CudaContext& context) {
  using namespace detail;
  switch (task.geometry.unit_bytes) {
    case 1: return task.ratio != 1 ? start_rows<1, true>(task, context) : start_rows<1, false>(task, context);
    case 2: return start_rows<2, false>(task, context);
    default: return start_rows<4, false>(task, context);
  }
}

}  // namespace graft::ops

// Padding in vectors of 16 bytes of y. One thread assembles each vector from elements of one or two rows of x.
#pragma once

#include "ops/padding/lines.cuh"

namespace graft::ops {
namespace detail {

/// The sizes of the work per thread, tuned on an H100.
struct VectorsPolicy {
  static constexpr int threads = 128;
  static constexpr int many = 2;  ///< The number of vectors per thread.
  static constexpr int few = 1;   ///< The number of vectors per thread if there are at most most_of_few vectors in all.
  static constexpr std::int64_t most_of_few = std::int64_t{1} << 18;
  static constexpr std::int64_t long_row =
      512;  ///< The length of rows of 2-byte elements from which most vectors are contiguous in x.
};

template <class Lines>
struct VectorsTask {
  const std::byte* x;
  std::byte* y;
  int units;  ///< The number of units in y.
  int row;
  int rows;
  int first_row;
  Divisor by_row;
  Columns columns;
  Lines lines;
  unsigned outside;
  float ratio;
};

/// Returns 16 bytes from an address that is a multiple of 2.
__device__ inline uint4 load_run(const std::byte* from) {
  const auto word = [&](int offset) { return __ldg(reinterpret_cast<const unsigned*>(from + offset)); };
  const auto half = [&](int offset) -> unsigned {
    return __ldg(reinterpret_cast<const std::uint16_t*>(from + offset));
  };
  const auto address = reinterpret_cast<std::uintptr_t>(from);
  if (address % 16 == 0) return __ldg(reinterpret_cast<const uint4*>(from));
  if (address % 4 == 0) return make_uint4(word(0), word(4), word(8), word(12));
  const unsigned words[3] = {word(2), word(6), word(10)};
  const unsigned ends[2] = {half(0), half(14)};
  return make_uint4(ends[0] | words[0] << 16U, __funnelshift_r(words[0], words[1], 16),
                    __funnelshift_r(words[1], words[2], 16), words[2] >> 16U | ends[1] << 16U);
}

/// Assembles `Count` vectors of 16 bytes of y per thread. If Runs is true, elements that are contiguous in x as well
/// are read in words.
template <int Unit, int Count, bool Runs, bool Scaled, bool Inner, class Lines>
__global__ void __launch_bounds__(VectorsPolicy::threads) pad_vectors(const __grid_constant__ VectorsTask<Lines> task) {
  using Element = UnitOf<Unit>;
  using Policy = VectorsPolicy;
  constexpr int count = 16 / Unit;
  const int first = static_cast<int>(blockIdx.x) * (Policy::threads * Count) + static_cast<int>(threadIdx.x);
  Element values[Count][count];
  unsigned moved[Count];  // One bit for each element.
#pragma unroll
  for (int j = 0; j < Count; ++j) {
    const int unit = ::min((first + j * Policy::threads) * count, task.units - 1);
    const int row = task.by_row.quotient(unit);
    const int at = unit - row * task.row;
    std::int64_t here;
    std::int64_t next;
    int channel;
    const bool here_inside = task.lines.find(task.first_row + row, here, channel);
    if constexpr (Runs) {
      static_assert(Unit == 2 && Count == 1 && !Scaled);
      if (at + count <= task.row && here_inside && first * count + count <= task.units) {
        // The index in x increases by at most 1 from one element to the next, so all elements are contiguous if the
        // last one has the index from + count - 1.
        const int from = task.columns.template source<Lines::repeats, Inner>(at);
        const int last = task.columns.template source<Lines::repeats, Inner>(at + count - 1);
        if (from >= 0 && last == from + count - 1) {
          reinterpret_cast<uint4*>(task.y)[first] = load_run(task.x + here + std::int64_t{from} * Unit);
          return;
        }
      }
    }
    const bool next_inside = task.lines.find(::min(task.first_row + row + 1, task.rows - 1), next, channel);
    moved[j] = 0;
#pragma unroll
    for (int e = 0; e < count; ++e) {
      const bool crossed = at + e >= task.row;
      const int from = task.columns.template source<Lines::repeats, Inner>(crossed ? at + e - task.row : at + e);
      values[j][e] = static_cast<Element>(task.outside);
      if (from >= 0 && (crossed ? next_inside : here_inside)) {
        values[j][e] = __ldg(reinterpret_cast<const Element*>(task.x + (crossed ? next : here)) + from);
        if constexpr (Scaled) moved[j] |= 1U << static_cast<unsigned>(e);
      }
    }
  }
#pragma unroll
  for (int j = 0; j < Count; ++j) {
    const int unit = (first + j * Policy::threads) * count;
    unsigned words[4] = {};
#pragma unroll
    for (int e = 0; e < count; ++e) {
      words[e * Unit / 4] |= static_cast<unsigned>(values[j][e]) << static_cast<unsigned>(e * Unit % 4 * 8);
    }
    uint4 result = make_uint4(words[0], words[1], words[2], words[3]);
    if constexpr (Scaled) {
      result = rescaled(result, task.ratio);
      if (moved[j] != (1U << static_cast<unsigned>(count)) - 1) {
        unsigned scaled[4] = {result.x, result.y, result.z, result.w};
#pragma unroll
        for (unsigned e = 0; e < count; ++e) {
          const unsigned mask = (moved[j] >> e & 1U) != 0 ? 0U : 0xFFU << (e % 4 * 8);
          scaled[e / 4] = (scaled[e / 4] & ~mask) | (task.outside & mask);
        }
        result = make_uint4(scaled[0], scaled[1], scaled[2], scaled[3]);
      }
    }
    if (unit + count <= task.units) {
      *reinterpret_cast<uint4*>(task.y + static_cast<std::int64_t>(unit) * Unit) = result;
      continue;
    }
    const unsigned kept[4] = {result.x, result.y, result.z, result.w};
#pragma unroll
    for (int e = 0; e < count; ++e) {
      if (unit + e < task.units) {
        reinterpret_cast<Element*>(task.y)[unit + e] =
            static_cast<Element>(kept[e * Unit / 4] >> static_cast<unsigned>(e * Unit % 4 * 8));
      }
    }
  }
}

template <int Unit, bool Scaled, bool Inner, class Lines>
[[nodiscard]] Status start_vectors(const PaddingTask& task, const CudaContext& context) {
  using Policy = VectorsPolicy;
  // The maximum number of units of a launch, unless 16 rows are longer.
  constexpr std::int64_t most = std::int64_t{1} << 30;
  constexpr std::int64_t whole = 16;  // This many rows are a multiple of 16 bytes.
  const Geometry& geometry = task.geometry;
  const auto row = static_cast<int>(geometry.row_units());
  const std::int64_t launch_rows = std::max<std::int64_t>(most / row / whole, 1) * whole;
  VectorsTask<Lines> own{.x = task.x,
                         .y = task.y,
                         .units = 0,
                         .row = row,
                         .rows = static_cast<int>(geometry.rows),
                         .first_row = 0,
                         .by_row = Divisor(row),
                         .columns = Columns(geometry),
                         .lines = Lines(geometry),
                         .outside = task.outside,
                         .ratio = task.ratio};
  for (std::int64_t first = 0; first < geometry.rows; first += launch_rows) {
    const std::int64_t units = std::min(launch_rows, geometry.rows - first) * row;
    own.y = task.y + first * row * Unit;
    own.first_row = static_cast<int>(first);
    own.units = static_cast<int>(units);
    const std::int64_t vectors = ceil_divide(units, 16 / Unit);
    const bool few = vectors <= Policy::most_of_few;
    auto* kernel = few ? pad_vectors<Unit, Policy::few, false, Scaled, Inner, Lines>
                       : pad_vectors<Unit, Policy::many, false, Scaled, Inner, Lines>;
    Grid grid{ceil_divide(vectors, Policy::threads * (few ? Policy::few : Policy::many)), Policy::threads};
    if constexpr (Unit == 2) {
      if (row >= Policy::long_row) {
        kernel = pad_vectors<Unit, Policy::few, true, Scaled, Inner, Lines>;
        grid = {ceil_divide(vectors, Policy::threads * Policy::few), Policy::threads};
      }
    }
    if (Status status = launch("Padding vectors", kernel, grid, context, own); !status.ok()) return status;
  }
  return {};
}

template <bool Inner, class Lines>
[[nodiscard]] Status start_small_units(const PaddingTask& task, const CudaContext& context) {
  switch (task.geometry.unit_bytes) {
    case 1:
      if (task.ratio != 1) return start_vectors<1, true, Inner, Lines>(task, context);
      return start_vectors<1, false, Inner, Lines>(task, context);
    case 2: return start_vectors<2, false, Inner, Lines>(task, context);
    default: return start_vectors<4, false, Inner, Lines>(task, context);
  }
}

}  // namespace detail

/// Returns whether run_vectors() supports the problem: no vector of 16 bytes lies in more than two rows.
[[nodiscard]] inline bool vectors_fit(const PaddingTask& task) {
  const Geometry& geometry = task.geometry;
  constexpr std::int64_t most_row = std::int64_t{1} << 26;  // The units of 16 rows can be counted in 31 bits.
  return geometry.unit_bytes < 16 && is_aligned(task.y, 16) && geometry.row_units() >= 16 / geometry.unit_bytes &&
         geometry.row_units() <= most_row;
}

[[nodiscard]] inline Status run_vectors(const PaddingTask& task, const CudaContext& context) {
  using namespace detail;
  if (!PlaneLines::fits(task.geometry)) return start_small_units<true, AnyLines>(task, context);
  if (task.geometry.inner != 1) return start_small_units<true, PlaneLines>(task, context);
  return start_small_units<false, PlaneLines>(task, context);
}

}  // namespace graft::ops

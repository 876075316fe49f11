// Padding unit by unit: single elements for short rows or small tensors, or vectors that move as a whole.
#pragma once

#include "ops/padding/lines.cuh"

namespace graft::ops {
namespace detail {

/// The number of units per thread, tuned on an H100: two vectors per thread fill the memory's queues, whereas
/// single elements need more. Small tensors use two units per thread: with one, a thread takes as long, but twice as
/// many blocks start (on an H200 0.3 us for each 500).
template <int Unit>
struct UnitsPolicy {
  static constexpr int threads = Unit == 16 ? 128 : 256;
  static constexpr int many = Unit == 16 ? 2 : 4;  ///< The number of units per thread.
  /// The number of units per thread if y has at most most_of_few units.
  static constexpr int few = 2;
  static constexpr std::int64_t most_of_few = std::int64_t{1} << 18;
};

template <class Lines>
struct UnitsTask {
  const std::byte* x;
  std::byte* y;
  int last;  ///< The last unit of y.
  int row;
  int first_row;
  unsigned outside;
  Divisor by_row;
  Columns columns;
  Lines lines;
  float ratio;
  // The following members are for channel-vector layouts; see Geometry.
  int channels;
  int unit_channels;
  Divisor by_pixel;
};

/// Copies `Count` units per thread. If Masked is true, y may contain channels after the last one, which become zeros.
/// If Inner is true, columns have several units.
template <int Unit, int Count, bool Scaled, bool Masked, bool Inner, class Lines>
__global__ void __launch_bounds__(UnitsPolicy<Unit>::threads) pad_units(const __grid_constant__ UnitsTask<Lines> task) {
  using Element = UnitOf<Unit>;
  constexpr int threads = UnitsPolicy<Unit>::threads;
  constexpr int count = Count;
  const int first = static_cast<int>(blockIdx.x) * (threads * count) + static_cast<int>(threadIdx.x);
  const Element* from[count];
  bool inside[count];
  int valid[count];
#pragma unroll
  for (int j = 0; j < count; ++j) {
    const int unit = ::min(first + j * threads, task.last);
    const int row = task.by_row.quotient(unit);
    const int at = unit - row * task.row;
    const int source = task.columns.template source<Lines::repeats, Inner>(at);
    std::int64_t offset;
    int channel = 0;
    inside[j] = task.lines.template find<true>(task.first_row + row, offset, channel) && source >= 0;
    from[j] = reinterpret_cast<const Element*>(task.x + offset) + source;
    if constexpr (Masked) {
      channel += task.by_pixel.remainder(at) * task.unit_channels;
      valid[j] = (task.channels - channel) * (Unit / task.unit_channels);
    }
  }
  Element values[count];
#pragma unroll
  for (int j = 0; j < count; ++j) {
    if constexpr (Unit == 16) {
      values[j] = make_uint4(task.outside, task.outside, task.outside, task.outside);
    } else {
      values[j] = static_cast<Element>(task.outside);
    }
    if (inside[j]) values[j] = __ldg(from[j]);
  }
#pragma unroll
  for (int j = 0; j < count; ++j) {
    if constexpr (Scaled) {
      if (inside[j]) values[j] = rescaled(values[j], task.ratio);
    }
    if constexpr (Masked) values[j] = Vector<std::int8_t, Unit>{values[j]}.first(valid[j]).raw;
    if (first + j * threads <= task.last) reinterpret_cast<Element*>(task.y)[first + j * threads] = values[j];
  }
}

template <int Unit, bool Scaled, bool Masked, bool Inner, class Lines>
[[nodiscard]] Status start_units(const PaddingTask& task, const CudaContext& context) {
  using Policy = UnitsPolicy<Unit>;
  // The maximum number of units of a launch, unless a single row is longer.
  constexpr std::int64_t most = std::int64_t{1} << 30;
  const Geometry& geometry = task.geometry;
  const auto row = static_cast<int>(geometry.row_units());
  const std::int64_t launch_rows = std::max<std::int64_t>(most / row, 1);
  UnitsTask<Lines> own{.x = task.x,
                       .y = task.y,
                       .last = 0,
                       .row = row,
                       .first_row = 0,
                       .outside = task.outside,
                       .by_row = Divisor(row),
                       .columns = Columns(geometry),
                       .lines = Lines(geometry),
                       .ratio = task.ratio,
                       .channels = geometry.channels,
                       .unit_channels = geometry.unit_channels,
                       .by_pixel = Divisor(geometry.pixel_units)};
  for (std::int64_t first = 0; first < geometry.rows; first += launch_rows) {
    const std::int64_t units = std::min(launch_rows, geometry.rows - first) * row;
    own.y = task.y + first * row * Unit;
    own.first_row = static_cast<int>(first);
    own.last = static_cast<int>(units - 1);
    const bool few = units <= Policy::most_of_few;
    const auto kernel = few ? pad_units<Unit, Policy::few, Scaled, Masked, Inner, Lines>
                            : pad_units<Unit, Policy::many, Scaled, Masked, Inner, Lines>;
    const Grid grid{ceil_divide(units, Policy::threads * (few ? Policy::few : Policy::many)), Policy::threads};
    if (Status status = launch("Padding units", kernel, grid, context, own); !status.ok()) return status;
  }
  return {};
}

template <bool Inner, class Lines>
[[nodiscard]] Status start_elements(const PaddingTask& task, const CudaContext& context) {
  switch (task.geometry.unit_bytes) {
    case 1:
      if (task.ratio != 1) return start_units<1, true, false, Inner, Lines>(task, context);
      return start_units<1, false, false, Inner, Lines>(task, context);
    case 2: return start_units<2, false, false, Inner, Lines>(task, context);
    default: return start_units<4, false, false, Inner, Lines>(task, context);
  }
}

template <bool Scaled, class Lines>
[[nodiscard]] Status start_vector_units(const PaddingTask& task, const CudaContext& context) {
  if (task.geometry.channels > 0) return start_units<16, Scaled, true, true, Lines>(task, context);
  return start_units<16, Scaled, false, true, Lines>(task, context);
}

}  // namespace detail

/// Runs pad_units(). Requires that x and y lie at multiples of a unit.
[[nodiscard]] inline Status run_units(const PaddingTask& task, const CudaContext& context) {
  using namespace detail;
  const Geometry& geometry = task.geometry;
  const bool planes = PlaneLines::fits(geometry);
  if (geometry.unit_bytes == 16) {
    if (task.ratio != 1) {
      return planes ? start_vector_units<true, PlaneLines>(task, context)
                    : start_vector_units<true, AnyLines>(task, context);
    }
    return planes ? start_vector_units<false, PlaneLines>(task, context)
                  : start_vector_units<false, AnyLines>(task, context);
  }
  if (!planes) return start_elements<true, AnyLines>(task, context);
  if (geometry.inner != 1) return start_elements<true, PlaneLines>(task, context);
  return start_elements<false, PlaneLines>(task, context);
}

}  // namespace graft::ops

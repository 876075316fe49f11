// Finds the row of x from which a row of Padding's y is copied, and contains definitions that the kernels share.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/divisor.cuh"
#include "kernels/launch.cuh"
#include "kernels/vector.cuh"
#include "ops/padding/geometry.cuh"

namespace graft::ops {

/// The arguments of the padding kernels.
struct PaddingTask {
  const std::byte* x = nullptr;
  std::byte* y = nullptr;
  std::int64_t x_bytes = 0;
  Geometry geometry;
  unsigned outside = 0;  ///< The constant in the type of y, repeated to fill the word.
  float ratio = 1;       ///< x_scale / y_scale of i8.
};

namespace detail {

/// Finds the rows of x that rows of y copy, for up to two padded axes. The axis outside of these must not be padded.
/// The struct is small, because reading parameters takes a noticeable part of a kernel of three microseconds.
struct PlaneLines {
  Divisor by_height = {};
  AxisMap<int> map = {};
  int height = 1;
  /// Whether there is a second padded axis, to which `depth` and the following members belong.
  bool is_deep = false;
  std::int64_t line_stride = 0;  ///< The stride in bytes of x, as for the other strides.
  std::int64_t volume_stride = 0;
  std::int64_t plane_stride = 0;
  int depth = 1;
  AxisMap<int> depth_map = {};
  Divisor by_depth = {};

  static constexpr bool repeats = false;  ///< Whether pads may be longer than one turn; see AxisMap::first_turn().
  [[nodiscard]] static bool is_plain(const Geometry& geometry, int axis) {
    return geometry.outer_maps[axis].size == geometry.outer_extents[axis] && geometry.outer_maps[axis].begin == 0;
  }
  [[nodiscard]] static bool fits(const Geometry& geometry) {
    const int rank = geometry.outer_rank;
    bool result = rank <= 3 && geometry.channel_axis < 0 && geometry.column.period == 0;
    for (int axis = 0; axis < std::min(rank, 2); ++axis) result = result && geometry.outer_maps[axis].period == 0;
    return result && (rank < 3 || is_plain(geometry, 2));
  }
  explicit PlaneLines(const Geometry& geometry) : by_height(1), by_depth(1) {
    const int rank = geometry.outer_rank;
    const auto stride = [&](int axis) { return geometry.outer_strides[axis] * geometry.unit_bytes; };
    if (rank > 0) {
      height = static_cast<int>(geometry.outer_extents[0]);
      by_height = Divisor(height);
      map = geometry.outer_maps[0].as_int();
      line_stride = stride(0);
    }
    if (rank == 2 && is_plain(geometry, 1)) {
      volume_stride = stride(1);
    } else if (rank > 1) {
      is_deep = true;
      depth = static_cast<int>(geometry.outer_extents[1]);
      by_depth = Divisor(depth);
      depth_map = geometry.outer_maps[1].as_int();
      plane_stride = stride(1);
      if (rank > 2) volume_stride = stride(2);
    }
  }

  /// Sets `offset` to the offset in bytes of the row of x that a row of y copies. Returns false for a row of constants.
  /// With Skips, rows without a second padded axis take a separate branch, which reads fewer parameters but takes
  /// longer if a thread finds several rows.
  template <bool Skips = false>
  [[nodiscard]] __device__ bool find(int row, std::int64_t& offset, int& /*channel*/) const {
    const int plane = by_height.quotient(row);
    const int from = map.first_turn(row - plane * height);
    if (Skips && !is_deep) {
      offset = plane * volume_stride + from * line_stride;
      return from >= 0;
    }
    const int volume = by_depth.quotient(plane);
    const int from_plane = depth_map.first_turn(plane - volume * depth);
    offset = volume * volume_stride + from_plane * plane_stride + from * line_stride;
    return from >= 0 && from_plane >= 0;
  }
};

/// Finds the rows of x that rows of y copy, for any number of padded axes.
struct AnyLines {
  int rank = 0;
  int extents[Geometry::max_outer] = {};
  Divisor by[Geometry::max_outer] = {};
  AxisMap<int> maps[Geometry::max_outer] = {};
  std::int64_t strides[Geometry::max_outer] = {};  ///< The strides in bytes of x.
  int channel_axis = -1;

  static constexpr bool repeats = true;
  explicit AnyLines(const Geometry& geometry) : rank(geometry.outer_rank), channel_axis(geometry.channel_axis) {
    for (int axis = 0; axis < rank; ++axis) {
      extents[axis] = static_cast<int>(geometry.outer_extents[axis]);
      by[axis] = Divisor(extents[axis]);
      maps[axis] = geometry.outer_maps[axis].as_int();
      strides[axis] = geometry.outer_strides[axis] * geometry.unit_bytes;
    }
  }

  /// Sets `offset` to the offset in bytes of the row of x that a row of y copies, and `channel` to the row's first
  /// channel in chw32 if the layout has padding. Returns false for a row of constants.
  template <bool Skips = false>
  [[nodiscard]] __device__ bool find(int row, std::int64_t& offset, int& channel) const {
    bool inside = true;
    offset = 0;
    channel = 0;
    for (int axis = 0; axis < rank; ++axis) {
      const int quotient = by[axis].quotient(row);
      const int at = row - quotient * extents[axis];
      const int from = maps[axis](at);
      inside = inside && from >= 0;
      offset += from * strides[axis];
      if (axis == channel_axis) channel = at * 32;
      row = quotient;
    }
    return inside;
  }
};

/// Finds the units of a row of x that the units of a row of y copy.
struct Columns {
  AxisMap<int> map = {};
  int inner = 1;  ///< The number of units in a column.
  Divisor by_inner = {};

  explicit Columns(const Geometry& geometry)
      : map(geometry.column.as_int()), inner(static_cast<int>(geometry.inner)), by_inner(inner) {}

  /// Returns the unit of a row of x that unit `unit` of a row of y copies, or -1 for the constant.
  template <bool Repeats, bool Inner = true>
  [[nodiscard]] __device__ int source(int unit) const {
    const int column = Inner ? by_inner.quotient(unit) : unit;
    const int from = Repeats ? map(column) : map.first_turn(column);
    if constexpr (!Inner) return from;
    return from < 0 ? -1 : from * inner + (unit - column * inner);
  }
};

template <int Unit>
using UnitOf = std::conditional_t<
    Unit == 16, uint4,
    std::conditional_t<Unit == 4, unsigned, std::conditional_t<Unit == 2, std::uint16_t, std::uint8_t>>>;

/// Returns 16 i8 values multiplied by `ratio` and rounded to nearest.
__device__ inline uint4 rescaled(const uint4& vector, float ratio) {
  float steps[16];
  Vector<std::int8_t, 16>{vector}.unpack(steps);
#pragma unroll
  for (float& each : steps) each *= ratio;
  return make_uint4(kernels::round_to_i8(steps), kernels::round_to_i8(steps + 4), kernels::round_to_i8(steps + 8),
                    kernels::round_to_i8(steps + 12));
}
__device__ inline std::uint8_t rescaled(std::uint8_t value, float ratio) {
  return static_cast<std::uint8_t>(quantize_device(static_cast<float>(static_cast<std::int8_t>(value)) * ratio, 1.F));
}

}  // namespace detail
}  // namespace graft::ops

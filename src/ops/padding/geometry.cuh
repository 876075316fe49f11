// A problem of Padding in the form that its CUDA kernels use: rows of y, each computed from one row of x.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "ops/padding/padding.hpp"

namespace graft::ops {

/// Maps an index of y along one axis to an index of x. An index outside x is mirrored (sign -1), shifted (sign 1) or
/// replaced with a fixed index (sign 0), so that no mode needs a branch of its own.
template <class Int>
struct AxisMap {
  Int size = 1;
  Int begin = 0;
  Int period = 0;  ///< The period with which x continues; 0 if first_turn() is sufficient for the pads.
  Int sign = 1;
  Int below = 0;  ///< The offset that is added to sign * index before the axis.
  Int above = 0;  ///< The offset that is added to sign * index after the axis.

  /// Returns the index in x that element `index` of y copies, or -1 for the constant.
  [[nodiscard]] __device__ Int operator()(Int index) const {
    Int at = index - begin;
    if (period > 0 && (at < 0 || at >= size)) {
      at %= period;
      if (at < 0) at += period;
    }
    return first_turn(at + begin);
  }
  /// Returns the index in x that element `index` of y copies, or -1 for the constant, if no pad is longer than one
  /// turn. A turn continues x by its own length, or in mode reflect by one element less; the modes constant and edge
  /// have a single turn of any length. The function has no branch.
  [[nodiscard]] __device__ Int first_turn(Int index) const {
    const Int at = index - begin;
    const Int before = sign * at + below;
    const Int behind = sign * at + above;
    const Int from = at < 0 ? before : at;
    return at >= size ? behind : from;
  }
  [[nodiscard]] AxisMap<int> as_int() const {
    return {static_cast<int>(size), static_cast<int>(begin), static_cast<int>(period),
            static_cast<int>(sign), static_cast<int>(below), static_cast<int>(above)};
  }
};

[[nodiscard]] inline AxisMap<std::int64_t> make_axis_map(PaddingMode mode, std::int64_t size, std::int64_t begin,
                                                         std::int64_t end) {
  AxisMap<std::int64_t> map{.size = size, .begin = begin};
  // Sets the period if the pad on either side is longer than a turn, which has `reach` elements.
  const auto repeat = [&](std::int64_t reach, std::int64_t period) {
    if (begin > reach || end > reach) map.period = std::max<std::int64_t>(period, 1);
  };
  switch (mode) {
    case PaddingMode::constant: map.sign = 0, map.below = map.above = -1; break;
    case PaddingMode::edge: map.sign = 0, map.above = size - 1; break;
    case PaddingMode::wrap:
      map.below = size, map.above = -size;
      repeat(size, size);
      break;
    case PaddingMode::symmetric:
      map.sign = -1, map.below = -1, map.above = 2 * size - 1;
      repeat(size, 2 * size);
      break;
    case PaddingMode::reflect:
      map.sign = -1, map.above = 2 * size - 2;
      repeat(size - 1, 2 * size - 2);
      break;
  }
  return map;
}

/// The output y as rows of units. A unit is an element, or 16 bytes if whole vectors of elements move together.
struct Geometry {
  static constexpr int max_outer = Extents::max_rank;

  int unit_bytes = 0;
  /// The number of axes outside the rows, which the following arrays list, innermost first. Neighboring axes without
  /// pads are merged.
  int outer_rank = 0;
  std::int64_t outer_extents[max_outer] = {};
  std::int64_t outer_strides[max_outer] = {};  ///< The strides in units of x.
  AxisMap<std::int64_t> outer_maps[max_outer] = {};
  std::int64_t rows = 1;
  /// The map of the columns of a row. A row consists of the innermost padded axis and the axes inside that axis. If the
  /// axes inside it are long, they form rows of their own.
  AxisMap<std::int64_t> column = {};
  std::int64_t columns = 1;  ///< The number of columns in a row of y.
  std::int64_t inner = 1;    ///< The number of units in a column.

  /// The channels after the last one of a channel-vector layout, for which y receives zeros. Channels are counted from
  /// the first unit of a pixel (chw32: of the row).
  int channels = 0;       ///< The number of channels of x; 0 if the layout has no padding.
  int unit_channels = 0;  ///< The number of channels in a unit.
  int pixel_units = 1;    ///< The number of consecutive units of one pixel.
  int channel_axis = -1;  ///< The outer axis of chw32 whose indices represent 32 channels each.

  [[nodiscard]] __host__ __device__ std::int64_t row_units() const { return columns * inner; }
};

/// Returns the geometry of a problem. Whole 16-byte units are used only if `aligned` is true, that is, if x and y lie
/// at multiples of 16 bytes.
[[nodiscard]] inline Geometry make_geometry(const Padding& op, const TensorDesc& x, bool aligned) {
  constexpr int vector_bytes = 16;
  // From this length on, the elements inside the padded axis form rows of their own.
  constexpr std::int64_t long_inner_bytes = 4096;

  struct Axis {
    std::int64_t size, begin, end;
    bool alone;  // The axis must not be merged.
  };
  std::array<Axis, Extents::max_rank + 1> axes{};
  int count = 0;
  const auto add = [&](int axis, std::int64_t size, bool alone = false) {
    const bool real = axis >= 0;
    axes[static_cast<std::size_t>(count++)] = {size, real ? op.begin(axis) : 0, real ? op.end(axis) : 0, alone};
  };
  Geometry result{.unit_bytes = static_cast<int>(size_of(x.dtype))};
  const std::int64_t vector = channels_per_vector(x.layout);
  if (x.layout == Layout::linear) {
    for (int axis = 0; axis < x.extents.rank(); ++axis) add(axis, x.extents[axis]);
  } else {
    const std::int64_t blocks = (x.extents[1] + vector - 1) / vector;
    const bool masked = x.extents[1] % vector != 0;
    result.unit_bytes = vector_bytes;
    if (masked) {
      result.channels = static_cast<int>(x.extents[1]);
      result.unit_channels = vector_bytes / static_cast<int>(size_of(x.dtype));
    }
    add(0, x.extents[0]);
    if (x.layout == Layout::chw32) add(-1, blocks, masked);
    add(2, x.extents[2]);
    add(3, x.extents[3]);
    if (x.layout == Layout::hwc8) add(-1, blocks);
    if (x.layout == Layout::chw32) add(-1, 2);
    result.pixel_units = static_cast<int>(axes[static_cast<std::size_t>(count - 1)].size);
  }

  const auto padded = [](const Axis& axis) { return axis.begin != 0 || axis.end != 0; };
  int last = count - 1;
  while (last >= 0 && !padded(axes[static_cast<std::size_t>(last)]) && !axes[static_cast<std::size_t>(last)].alone) {
    result.inner *= axes[static_cast<std::size_t>(last--)].size;
  }
  if (x.layout == Layout::linear && aligned && result.inner * result.unit_bytes % vector_bytes == 0) {
    result.inner = result.inner * result.unit_bytes / vector_bytes;
    result.unit_bytes = vector_bytes;
  }
  std::int64_t stride = result.inner;
  const bool inner_is_row =
      result.inner * result.unit_bytes >= long_inner_bytes || last < 0 || axes[static_cast<std::size_t>(last)].alone;
  if (inner_is_row) {
    result.columns = result.inner;
    result.column = make_axis_map(PaddingMode::constant, result.inner, 0, 0);
    result.inner = 1;
  } else {
    const Axis& axis = axes[static_cast<std::size_t>(last--)];
    result.columns = axis.size + axis.begin + axis.end;
    result.column = make_axis_map(op.mode, axis.size, axis.begin, axis.end);
    stride *= axis.size;
  }

  bool may_merge = false;
  for (int i = last; i >= 0; --i) {
    const Axis& axis = axes[static_cast<std::size_t>(i)];
    const bool plain = !padded(axis) && !axis.alone;
    const std::int64_t extent = axis.size + axis.begin + axis.end;
    result.rows *= extent;
    if (plain && may_merge) {
      const int merged = result.outer_rank - 1;
      result.outer_extents[merged] *= extent;
      result.outer_maps[merged].size *= extent;
    } else {
      const int next = result.outer_rank;
      if (axis.alone) result.channel_axis = result.outer_rank;
      result.outer_extents[next] = extent;
      result.outer_strides[next] = stride;
      result.outer_maps[next] = make_axis_map(op.mode, axis.size, axis.begin, axis.end);
      ++result.outer_rank;
    }
    may_merge = plain;
    stride *= axis.size;
  }
  return result;
}

}  // namespace graft::ops

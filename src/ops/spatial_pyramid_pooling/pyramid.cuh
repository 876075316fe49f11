// A problem of SpatialPyramidPooling in the form that its CUDA kernels use: the bins of all levels are unions of cells,
// and each element is in exactly one cell, so that one pass over the input serves every level.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "kernels/divisor.cuh"
#include "ops/spatial_pyramid_pooling/spatial_pyramid_pooling.hpp"

namespace graft::ops {

inline constexpr int most_axis_cells = 64;
inline constexpr int most_axis_bins = 64;
inline constexpr int most_levels = 16;

/// The bins of all levels along one axis. The borders of all bins divide the axis into cells, and each bin consists of
/// consecutive cells.
struct PyramidAxis {
  int cells = 0;
  int borders[most_axis_cells + 1] = {};    ///< The borders of the cells: cell i spans borders[i] to borders[i + 1].
  std::uint8_t first[most_axis_bins] = {};  ///< The first cell of each bin, level after level.
  std::uint8_t last[most_axis_bins] = {};   ///< The index after the last cell of each bin.

  [[nodiscard]] __device__ int length(int bin) const { return borders[last[bin]] - borders[first[bin]]; }
};

struct PyramidLevel {
  int side = 0;            ///< The number of bins along each side.
  int first_axis_bin = 0;  ///< The index of the first bin among the bins of all levels along one side.
  int first_bin = 0;       ///< The index of the first bin among the bins of all levels of a channel.
  int divisor = 0;         ///< The divisor of averages, or 0 if it is the number of elements.
  Divisor by_side = {};
  Divisor by_bins = {};  ///< The divisor is the number of bins of this level in one channel.
};

struct PyramidAxes {
  PyramidAxis rows;
  PyramidAxis columns;
};

struct Pyramid {
  int levels = 0;
  int bins = 0;       ///< The number of bins of all levels in one channel.
  int axis_bins = 0;  ///< The number of bins of all levels along one side.
  int channels = 0;
  PyramidLevel level[most_levels] = {};
  PyramidAxes axes;
};

/// Computes the cells and bins of an axis of `size` elements. Returns false if there are more bins or cells than a
/// PyramidAxis can store. Allocates no memory.
[[nodiscard]] inline bool make_axis(const SpatialPyramidPooling& op, std::int64_t size, PyramidAxis& axis) {
  std::array<Bin, most_axis_bins> bins{};
  std::array<std::int64_t, std::size_t{2} * most_axis_bins> borders{};
  std::size_t count = 0;
  for (const std::int64_t level : op.levels) {
    if (static_cast<std::int64_t>(count) + level > most_axis_bins) return false;
    for (std::int64_t i = 0; i < level; ++i, ++count) {
      bins[count] = bin_at(op.binning, size, level, i);
      borders[2 * count] = bins[count].begin;
      borders[2 * count + 1] = bins[count].end;
    }
  }
  auto* const begin = borders.data();
  std::sort(begin, begin + 2 * count);
  auto* const end = std::unique(begin, begin + 2 * count);
  axis.cells = static_cast<int>(end - begin) - 1;
  if (axis.cells > most_axis_cells) return false;
  std::copy(begin, end, axis.borders);
  const auto cell_at = [&](std::int64_t border) {
    return static_cast<std::uint8_t>(std::lower_bound(begin, end, border) - begin);
  };
  for (std::size_t i = 0; i < count; ++i) {
    axis.first[i] = cell_at(bins[i].begin);
    axis.last[i] = cell_at(bins[i].end);
  }
  return true;
}

[[nodiscard]] inline bool make_pyramid(const SpatialPyramidPooling& op, const Extents& x, Pyramid& pyramid) {
  constexpr std::int64_t most = std::int64_t{1} << 30;
  if (op.levels.size() > most_levels || x[2] * x[3] > most || x[0] * x[1] > most) return false;
  PyramidAxis& rows = pyramid.axes.rows;
  PyramidAxis& columns = pyramid.axes.columns;
  if (!make_axis(op, x[2], rows) || !make_axis(op, x[3], columns)) return false;
  for (const std::int64_t side : op.levels) {
    PyramidLevel& level = pyramid.level[pyramid.levels++];
    level.side = static_cast<int>(side);
    level.first_axis_bin = pyramid.axis_bins;
    level.first_bin = pyramid.bins;
    if (op.binning == Binning::caffe) {
      level.divisor =
          static_cast<int>(bin_at(op.binning, x[2], side, 0).divisor * bin_at(op.binning, x[3], side, 0).divisor);
    }
    level.by_side = Divisor(level.side);
    level.by_bins = Divisor(level.side * level.side);
    pyramid.axis_bins += level.side;
    pyramid.bins += level.side * level.side;
  }
  pyramid.channels = static_cast<int>(x[1]);
  return true;
}

}  // namespace graft::ops

// How the CUDA kernels of SpatialPyramidPooling see a problem: all bins of all levels as unions of cells, of which each
// element is in one, so that one pass over the input serves every level.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "ops/spatial_pyramid_pooling/spatial_pyramid_pooling.hpp"

namespace graft {

inline constexpr int most_axis_cells = 64;
inline constexpr int most_axis_bins = 64;
inline constexpr int most_levels = 16;

/// The bins of all levels along one axis.
struct PyramidAxis {
  int cells = 0;
  int borders[most_axis_cells + 1] = {};    ///< Cell i is borders[i] to borders[i + 1].
  std::uint8_t first[most_axis_bins] = {};  ///< Cells of each bin, level after level,
  std::uint8_t last[most_axis_bins] = {};   ///< up to this one, which is not in it.
  int divisors[most_axis_bins] = {};
};

struct Pyramid {
  int levels = 0;
  int bins[most_levels] = {};  ///< Along one side.
  int first_axis_bin[most_levels] = {};
  int first_bin[most_levels] = {};  ///< Of a channel.
  int all_bins = 0;                 ///< Of a channel.
  int channels = 0;
  PyramidAxis rows;
  PyramidAxis columns;
};

/// False where there are more bins or cells than a pyramid holds. Allocates nothing.
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
    axis.divisors[i] = static_cast<int>(bins[i].divisor);
  }
  return true;
}

[[nodiscard]] inline bool make_pyramid(const SpatialPyramidPooling& op, const Extents& x, Pyramid& pyramid) {
  if (op.levels.size() > most_levels || x[2] * x[3] >= std::int64_t{1} << 31) return false;
  int axis_bins = 0;
  for (const std::int64_t level : op.levels) {
    const int level_index = pyramid.levels++;
    pyramid.bins[level_index] = static_cast<int>(level);
    pyramid.first_axis_bin[level_index] = axis_bins;
    pyramid.first_bin[level_index] = pyramid.all_bins;
    axis_bins += static_cast<int>(level);
    pyramid.all_bins += static_cast<int>(level * level);
  }
  pyramid.channels = static_cast<int>(x[1]);
  return make_axis(op, x[2], pyramid.rows) && make_axis(op, x[3], pyramid.columns);
}

}  // namespace graft

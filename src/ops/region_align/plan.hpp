// The sizes of a problem of RegionAlign.
#pragma once

#include <cstdint>

#include "ops/region_align/region_align.hpp"
#include "ops/region_align/sampling.hpp"

namespace graft::ops {

struct RegionSizes {
  RegionSizes(const RegionAlign& op, const Problem& problem)
      : items(problem.inputs[0].extents[0]),
        channels(problem.inputs[0].extents[1]),
        regions(problem.inputs[1].extents[0]),
        rows(grid_of(op, problem.inputs[0].extents[2], op.output_height)),
        columns(grid_of(op, problem.inputs[0].extents[3], op.output_width)) {}

  [[nodiscard]] std::int64_t area() const { return std::int64_t{rows.size} * columns.size; }
  [[nodiscard]] std::int64_t bins() const { return std::int64_t{rows.bins} * columns.bins; }

  std::int64_t items;
  std::int64_t channels;
  std::int64_t regions;
  RegionGrid rows;
  RegionGrid columns;

 private:
  static RegionGrid grid_of(const RegionAlign& op, std::int64_t size, std::int64_t bins) {
    return {.size = static_cast<int>(size),
            .bins = static_cast<int>(bins),
            .ratio = static_cast<int>(op.sampling_ratio),
            .scale = op.spatial_scale,
            .is_half_pixel = op.coordinate_transformation_mode == RegionCoordinates::half_pixel};
  }
};

}  // namespace graft::ops

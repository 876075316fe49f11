// What a region that only moves elements does to each axis.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace graft::passes {

/// What one run of a movement does, axis by axis: element [i, j, ...] of y is element [axes[0][i], axes[1][j], ...] of
/// x, and `constant` where one of those is `outside`.
struct AxisMaps {
  static constexpr std::int64_t outside = -1;
  std::vector<std::int64_t> x_dims;
  std::vector<std::vector<std::int64_t>> axes;
  double constant = 0;  ///< Of the elements outside, if there are any.
};

/// What runs of a movement on numbered elements showed.
struct LearnedMovement {
  std::vector<AxisMaps> runs;  ///< One for each set of sizes; empty where it is no movement along the axes.
  std::string reason;          ///< Why it is none, if that is known.
  std::size_t elements = 0;    ///< Of the results of its runs.
};

}  // namespace graft::passes

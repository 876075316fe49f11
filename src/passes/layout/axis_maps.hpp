// The axis maps of a region that only moves elements: for each axis, the input index of each output index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace graft::passes {

/// The result of running once a part of the graph that only moves elements from x to y, such as slices and repetitions:
/// element [i, j, ...] of y is element [axes[0][i], axes[1][j], ...] of x. If one of these indices is `outside`, the
/// element of y is `constant`.
struct AxisMaps {
  static constexpr std::int64_t outside = -1;
  std::vector<std::int64_t> x_dims;
  std::vector<std::vector<std::int64_t>> axes;
  double constant = 0;  ///< The value of the elements that do not come from x; 0 if there are none.
};

/// The axis maps of a part of the graph that only moves elements (a Movement). They are found by running it on an input
/// whose elements are their own indices.
struct LearnedMovement {
  std::vector<AxisMaps> runs;  ///< An entry per set of sizes that was run; empty if the region has no axis maps.
  std::string reason;          ///< Why `runs` is empty, if known.
  std::size_t elements = 0;    ///< The number of elements of y in all runs.
};

}  // namespace graft::passes

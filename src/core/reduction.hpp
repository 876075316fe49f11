// Plans reductions over any set of axes of a row-major tensor as two nested loops, for the reference kernels and the
// CUDA kernels.
#pragma once

#include <cstdint>
#include <span>

#include "graft/operator/shape.hpp"
#include "graft/operator/status.hpp"

namespace graft {

/// A tensor as an outer loop over the kept axes and an inner loop over the reduced axes. Neighboring axes of the same
/// kind are merged, and axes of size 1 are dropped: NCHW reduced over axis 1 has the kept extents [N, HW] and the
/// reduced extents [C].
struct ReductionPlan {
  Extents kept_extents;
  Extents kept_strides;  ///< Strides of the kept extents, in elements.
  Extents reduced_extents;
  Extents reduced_strides;
  std::int64_t kept_count = 1;
  std::int64_t reduced_count = 1;
};

/// Plans a reduction over `axes`. Fails for an axis outside -rank..rank-1 and for an axis that is listed twice.
[[nodiscard]] Status plan_reduction(const Extents& extents, std::span<const std::int64_t> axes, ReductionPlan& plan);

/// Returns the offset of the element with this index in a loop over `extents`, whose last extent varies fastest.
[[nodiscard]] inline std::int64_t offset_of(std::int64_t index, const Extents& extents, const Extents& strides) {
  std::int64_t offset = 0;
  for (int axis = extents.rank() - 1; axis > 0; --axis) {
    offset += index % extents[axis] * strides[axis];
    index /= extents[axis];
  }
  return extents.rank() == 0 ? 0 : offset + index * strides[0];
}

}  // namespace graft

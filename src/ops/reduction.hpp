// How a reduction over any set of axes walks through a row-major tensor. Shared by reference and CUDA kernels.
#pragma once

#include <cstdint>
#include <span>

#include "graft/shape.hpp"
#include "graft/status.hpp"

namespace graft::ops {

/// A tensor as an outer loop over what is kept and an inner loop over what is reduced. Neighboring axes of the same
/// kind are merged and axes of size 1 dropped: NCHW over {1} is kept [N, HW], reduced [C].
struct ReductionPlan {
  Extents kept_extents;
  Extents kept_strides;  ///< In elements.
  Extents reduced_extents;
  Extents reduced_strides;
  std::int64_t kept_count = 1;
  std::int64_t reduced_count = 1;
};

/// Fails for an axis outside -rank..rank-1 and for one named twice.
[[nodiscard]] Status plan_reduction(const Extents& extents, std::span<const std::int64_t> axes, ReductionPlan& plan);

/// Where the index-th element of a loop over `extents` lies, the last extent running fastest.
[[nodiscard]] inline std::int64_t offset_of(std::int64_t index, const Extents& extents, const Extents& strides) {
  std::int64_t offset = 0;
  for (int axis = extents.rank() - 1; axis > 0; --axis) {
    offset += index % extents[axis] * strides[axis];
    index /= extents[axis];
  }
  return extents.rank() == 0 ? 0 : offset + index * strides[0];
}

}  // namespace graft::ops

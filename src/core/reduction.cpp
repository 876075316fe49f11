// Plans reductions over any set of axes.
#include "core/reduction.hpp"

#include <array>
#include <string>

namespace graft {

Status plan_reduction(const Extents& extents, std::span<const std::int64_t> axes, ReductionPlan& plan) {
  const int rank = extents.rank();
  std::array<bool, Extents::max_rank> reduced{};
  for (const std::int64_t axis : axes) {
    if (axis < -rank || axis >= rank) {
      return invalid_argument("attribute `axes` contains " + std::to_string(axis) + "; each axis must be between " +
                              std::to_string(-rank) + " and " + std::to_string(rank - 1) + " for rank " +
                              std::to_string(rank));
    }
    bool& flag = reduced[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)];
    if (flag) return invalid_argument("attribute `axes` contains axis " + std::to_string(axis) + " twice");
    flag = true;
  }

  struct Group {
    std::int64_t extent;
    std::int64_t stride;
    bool reduced;
  };
  std::array<Group, Extents::max_rank> groups{};  // Groups of merged axes, innermost first.
  int count = 0;
  std::int64_t stride = 1;
  for (int axis = rank - 1; axis >= 0; --axis) {
    const bool flag = reduced[static_cast<std::size_t>(axis)];
    const std::int64_t extent = extents[axis];
    if (extent != 1) {
      if (count > 0 && groups[static_cast<std::size_t>(count - 1)].reduced == flag) {
        groups[static_cast<std::size_t>(count - 1)].extent *= extent;
      } else {
        groups[static_cast<std::size_t>(count++)] = {extent, stride, flag};
      }
    }
    stride *= extent;
  }

  plan = {};
  for (int i = count - 1; i >= 0; --i) {
    const Group& group = groups[static_cast<std::size_t>(i)];
    (group.reduced ? plan.reduced_extents : plan.kept_extents).push_back(group.extent);
    (group.reduced ? plan.reduced_strides : plan.kept_strides).push_back(group.stride);
    (group.reduced ? plan.reduced_count : plan.kept_count) *= group.extent;
  }
  return {};
}

}  // namespace graft

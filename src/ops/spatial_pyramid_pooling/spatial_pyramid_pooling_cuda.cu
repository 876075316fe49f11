// The CUDA variants of SpatialPyramidPooling, and the choice of the kernel for a problem.
#include "ops/spatial_pyramid_pooling/bins.cuh"
#include "ops/spatial_pyramid_pooling/nested_levels.cuh"
#include "ops/spatial_pyramid_pooling/planes.cuh"
#include "ops/spatial_pyramid_pooling/small_bins.cuh"
#include "ops/spatial_pyramid_pooling/spatial_pyramid_pooling.hpp"
#include "ops/spatial_pyramid_pooling/whole.cuh"

namespace graft::ops {
namespace {

using Op = SpatialPyramidPooling;

constexpr std::size_t vector_bytes = 16;

Status planes_fits(const Op& op, const Problem& problem) {
  const Extents& extents = problem.inputs[0].extents;
  if (extents.element_count() == 0) return {};
  Pyramid pyramid;
  if (!make_pyramid(op, extents, pyramid)) {
    return unsupported("supports up to " + std::to_string(most_levels) + " levels with " +
                       std::to_string(most_axis_bins) + " bins, and up to 2^30 planes of 2^30 elements");
  }
  if (planes_fit(pyramid, extents[3])) return {};
  return unsupported("supports images of which one row of each cell fits into shared memory, found rows of " +
                     std::to_string(extents[3]) + " elements in " + std::to_string(pyramid.axes.rows.cells) + " cells");
}

Status bins_fits(const Op& /*op*/, const Problem& /*problem*/) { return {}; }

/// Calls `f(x, y, reduction)` with typed addresses and a value of the type Maximum or Average. Does nothing if x is
/// empty.
template <class F>
Status with_types(const Op& op, const Problem& problem, const Buffers& buffers, F&& f) {
  if (problem.inputs[0].extents.element_count() == 0) return {};
  return dispatch_device(problem.inputs[0].dtype, [&](auto element) -> Status {
    using T = decltype(element);
    const auto* x = static_cast<const T*>(buffers.inputs[0]);
    auto* y = static_cast<T*>(buffers.outputs[0]);
    if (op.mode == PoolingMode::max) return f(x, y, detail::Maximum{});
    return f(x, y, detail::Average{});
  });
}

Status planes_run(const Op& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
  return with_types(op, problem, buffers, [&]<class T, class Reduce>(const T* x, T* y, Reduce) -> Status {
    const Extents& extents = problem.inputs[0].extents;
    Pyramid pyramid;
    if (!make_pyramid(op, extents, pyramid)) return unsupported("SpatialPyramidPooling: too many bins");
    DeviceTraits device;
    if (Status status = current_device(device); !status.ok()) return status;
    if (has_small_bins(op, extents)) return run_small_bins<T, Reduce>(op, extents, x, y, device, context);
    auto* partials = static_cast<float*>(buffers.workspace);
    constexpr std::int64_t room = Op::shared_planes_workspace / sizeof(float);
    if (is_aligned(x, vector_bytes)) {
      if (is_whole(op, extents, device)) return run_whole<T, Reduce>(op, extents, x, y, device, context);
      detail::NestedLevelsPlan nested_levels;
      if (const detail::NestedLevels kind = detail::make_nested_levels<T>(op, extents, device, nested_levels);
          kind != detail::NestedLevels::none) {
        return run_nested_levels<T, Reduce>(kind, nested_levels, x, y, device, context);
      }
      if (can_stage<T>(pyramid, extents)) {
        return run_planes<T, widest<T>, Reduce, true>(op, pyramid, extents, x, y, partials, room, device, context);
      }
      if (extents[3] % widest<T> == 0) {
        return run_planes<T, widest<T>, Reduce, false>(op, pyramid, extents, x, y, partials, room, device, context);
      }
    }
    return run_planes<T, 1, Reduce, false>(op, pyramid, extents, x, y, partials, room, device, context);
  });
}

Status bins_run(const Op& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
  return with_types(op, problem, buffers, [&]<class T, class Reduce>(const T* x, T* y, Reduce) {
    return run_bins<T, Reduce>(op, problem.inputs[0].extents, x, y, context);
  });
}

}  // namespace

std::span<const Variant<Op>> cuda_kernels(const Op& /*op*/) {
  static constexpr std::array variants{Variant<Op>{"planes", planes_fits, planes_run},
                                       Variant<Op>{"bins", bins_fits, bins_run}};
  return variants;
}

}  // namespace graft::ops

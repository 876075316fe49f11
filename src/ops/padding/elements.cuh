// Padding with one element per thread and 64-bit indices, for problems whose rows exceed the counters of the other
// kernels.
#pragma once

#include "kernels/launch.cuh"
#include "kernels/strides.cuh"
#include "ops/padding/lines.cuh"

namespace graft::ops {
namespace detail {

inline constexpr int elements_threads = 256;

template <int Unit, bool Scaled>
__global__ void __launch_bounds__(elements_threads) pad_elements(const __grid_constant__ PaddingTask task) {
  using Element = UnitOf<Unit>;
  const Geometry& geometry = task.geometry;
  const std::int64_t element = static_cast<std::int64_t>(blockIdx.x) * elements_threads + threadIdx.x;
  if (element >= geometry.rows * geometry.row_units()) return;
  std::int64_t index = divide(element, geometry.inner);
  std::int64_t from = element - index * geometry.inner;
  std::int64_t row = divide(index, geometry.columns);
  const std::int64_t column = geometry.column(index - row * geometry.columns);
  bool outside = column < 0;
  from += column * geometry.inner;
  for (int axis = 0; axis < geometry.outer_rank; ++axis) {
    const std::int64_t rest = divide(row, geometry.outer_extents[axis]);
    const std::int64_t at = geometry.outer_maps[axis](row - rest * geometry.outer_extents[axis]);
    outside = outside || at < 0;
    from += at * geometry.outer_strides[axis];
    row = rest;
  }
  auto value = static_cast<Element>(task.outside);
  if (!outside) {
    value = reinterpret_cast<const Element*>(task.x)[from];
    if constexpr (Scaled) value = rescaled(value, task.ratio);
  }
  reinterpret_cast<Element*>(task.y)[element] = value;
}

}  // namespace detail

[[nodiscard]] inline Status run_elements(const PaddingTask& task, const CudaContext& context) {
  using namespace detail;
  const Geometry& geometry = task.geometry;
  const Grid grid{ceil_divide(geometry.rows * geometry.row_units(), elements_threads), elements_threads};
  const auto start = [&](auto kernel) { return launch("Padding elements", kernel, grid, context, task); };
  if (geometry.unit_bytes == 4) return start(pad_elements<4, false>);
  if (geometry.unit_bytes == 2) return start(pad_elements<2, false>);
  return start(task.ratio != 1 ? pad_elements<1, true> : pad_elements<1, false>);
}

}  // namespace graft::ops

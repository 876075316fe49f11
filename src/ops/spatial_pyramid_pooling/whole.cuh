// SpatialPyramidPooling with one bin in every level: each plane is a row of contiguous elements that is reduced to one
// number.
#pragma once

#include <algorithm>

#include "kernels/launch.cuh"
#include "kernels/row_vectors.cuh"
#include "kernels/strides.cuh"
#include "ops/spatial_pyramid_pooling/reduction.cuh"
#include "ops/spatial_pyramid_pooling/spatial_pyramid_pooling.hpp"

namespace graft::ops {
namespace detail {

/// The sizes of blocks and the work per thread, tuned on an H100.
struct WholePolicy {
  /// The number of loads that a thread issues before it uses the first one, if a block pools a plane.
  static constexpr int in_flight = 4;
  static constexpr int in_lane = 2;  ///< The number of such loads if lanes of a warp pool a plane.
  static constexpr int most_threads = 512;
  static constexpr int most_in_warp = 128;  ///< The largest number of vectors of a plane that lanes of one warp pool.
};

struct WholePlan {
  Rows planes;
  std::int64_t channels = 0;
  int levels = 0;  ///< The number of levels, all of which have one bin.
  float count = 1;
  float x_scale = 1;
  Quantizer quantizer = {};
};

/// Pools each plane to one bin with 1 << log2_lanes lanes of a warp, or with a block if `ByBlock` is true.
template <class T, class Reduce, int R, RowForm Form, bool ByBlock>
__global__ void __launch_bounds__(WholePolicy::most_threads)
    pool_whole(const T* x, T* y, WholePlan plan, int log2_lanes) {
  constexpr int N = widest<T>;
  constexpr int warp = 32;
  const auto thread = static_cast<int>(threadIdx.x);
  const int step = ByBlock ? static_cast<int>(blockDim.x) : 1 << log2_lanes;
  const std::int64_t plane =
      ByBlock ? blockIdx.x
              : static_cast<std::int64_t>(blockIdx.x) * (blockDim.x >> log2_lanes) + (threadIdx.x >> log2_lanes);
  const std::int64_t begin = plan.planes.begin(plane);
  float values[N];
#pragma unroll
  for (float& each : values) each = Reduce::identity();
  if (plane < plan.planes.count) {
    bool more = true;
    for (int first = ByBlock ? thread : thread & (step - 1); more; first += R * step) {
      Vector<T, N> loads[R];
      RowVector places[R];
#pragma unroll
      for (int r = 0; r < R; ++r) {
        places[r] = plan.planes.vector<N, Form>(begin, first + r * step);
        loads[r] = places[r].template load<T, N, Form>(x, plan.planes.size());
      }
#pragma unroll
      for (int r = 0; r < R; ++r) {
        float loaded[N];
        loads[r].unpack(loaded);
#pragma unroll
        for (int i = 0; i < N; ++i) {
          const bool inside = Form == RowForm::whole || (i >= places[r].begin && i < places[r].end);
          if (places[r].exists && inside) values[i] = Reduce::apply(values[i], loaded[i]);
        }
      }
      more = places[R - 1].exists;
    }
  }
  float value = reduce_lanes<Reduce>(reduce_all<Reduce>(values), ByBlock ? 5 : log2_lanes);
  if constexpr (ByBlock) {
    __shared__ float of_warps[warp];
    if (thread % warp == 0) of_warps[thread / warp] = value;
    __syncthreads();
    if (thread >= warp) return;
    value = thread < step / warp ? of_warps[thread] : Reduce::identity();
    value = reduce_lanes<Reduce>(value, 5);
  }
  if (plane >= plan.planes.count || (thread & (ByBlock ? warp - 1 : step - 1)) != 0) return;
  const T result = to_output<T>(Reduce::finish(value, plan.count), plan.x_scale, plan.quantizer);
  const std::int64_t item = divide(plane, plan.channels);
  for (int level = 0; level < plan.levels; ++level) {
    y[(item * (plan.levels - 1) + level) * plan.channels + plane] = result;
  }
}

}  // namespace detail

/// Returns whether run_whole() suits the problem: all levels have one bin. Planes that are long, and too few for all
/// multiprocessors, are pooled faster if several blocks share each of them.
[[nodiscard]] inline bool is_whole(const SpatialPyramidPooling& op, const Extents& x, const DeviceTraits& device) {
  constexpr std::int64_t long_plane = 16384;
  constexpr std::int64_t most = std::int64_t{1} << 30;
  const std::int64_t length = x[2] * x[3];
  return std::all_of(op.levels.begin(), op.levels.end(), [](std::int64_t side) { return side == 1; }) &&
         length <= most && (x[0] * x[1] >= device.multiprocessors || length <= long_plane);
}

/// Pools each plane to one bin, for a problem for which is_whole() is true. x must lie at a multiple of 16 bytes.
template <class T, class Reduce>
[[nodiscard]] Status run_whole(const SpatialPyramidPooling& op, const Extents& extents, const T* x, T* y,
                               const DeviceTraits& device, const CudaContext& context) {
  using namespace detail;
  using Policy = WholePolicy;
  const auto length = static_cast<int>(extents[2] * extents[3]);
  const auto divisor = [&](int axis) { return static_cast<float>(bin_at(op.binning, extents[axis], 1, 0).divisor); };
  const WholePlan plan{.planes = {.count = extents[0] * extents[1], .length = length, .pitch = length},
                       .channels = extents[1],
                       .levels = static_cast<int>(op.levels.size()),
                       .count = divisor(2) * divisor(3),
                       .x_scale = op.x_scale,
                       .quantizer = Quantizer(op.y_scale)};
  const std::int64_t vectors = plan.planes.vectors(widest<T>);
  const auto run = [&]<RowForm Form>(std::integral_constant<RowForm, Form>) {
    if (vectors > Policy::most_in_warp) {
      const std::int64_t threads =
          std::min<std::int64_t>(ceil_divide(vectors, Policy::in_flight), Policy::most_threads);
      const Grid grid{plan.planes.count, static_cast<int>(ceil_divide(threads, 32) * 32)};
      return launch("SpatialPyramidPooling whole", pool_whole<T, Reduce, Policy::in_flight, Form, true>, grid, context,
                    x, y, plan, 0);
    }
    int log2_lanes = 0;
    while (log2_lanes < 5 && 1 << log2_lanes < vectors) ++log2_lanes;
    auto* kernel = vectors <= 1 << log2_lanes ? pool_whole<T, Reduce, 1, Form, false>
                                              : pool_whole<T, Reduce, Policy::in_lane, Form, false>;
    return launch("SpatialPyramidPooling whole", kernel, spread_grid(plan.planes.count << log2_lanes, device), context,
                  x, y, plan, log2_lanes);
  };
  if (length % widest<T> == 0) return run(std::integral_constant<RowForm, RowForm::whole>{});
  return run(std::integral_constant<RowForm, RowForm::shifted>{});
}

}  // namespace graft::ops

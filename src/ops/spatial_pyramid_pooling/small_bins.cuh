// SpatialPyramidPooling of small tensors to one level of small bins: a few lanes per bin, which load all its elements
// at once.
#pragma once

#include "kernels/divisor.cuh"
#include "kernels/launch.cuh"
#include "ops/spatial_pyramid_pooling/reduction.cuh"
#include "ops/spatial_pyramid_pooling/spatial_pyramid_pooling.hpp"

namespace graft::ops {
namespace detail {

/// The limits of the problems for these kernels and the work per lane, tuned on an H100.
struct SmallBinsPolicy {
  static constexpr int log2_lanes = 3;
  static constexpr int lanes = 1 << log2_lanes;
  /// The number of loads that a lane issues before it uses the first one.
  static constexpr int loads = 6;
  static constexpr std::int64_t most = std::int64_t{1} << 20;  ///< The largest number of elements of x, and of y.
};

/// The parameters from which the bins of an axis are computed as in bin_at(), in 31 bits.
struct SmallBinsAxis {
  int size;
  int ceiling;
  int step;    ///< The stride of the bins; unused for adaptive bins.
  int offset;  ///< The beginning of the first bin; negative for padding.

  [[nodiscard]] static SmallBinsAxis make(Binning binning, std::int64_t size, std::int64_t side) {
    const Bin first = bin_at(binning, size, side, 0);
    const auto ceiling = static_cast<int>(ceil_divide(size, side));
    const bool is_caffe = binning == Binning::caffe;
    return {.size = static_cast<int>(size),
            .ceiling = ceiling,
            .step = is_caffe ? ceiling : static_cast<int>(size / side),
            .offset = is_caffe ? static_cast<int>(first.end) - ceiling : 0};
  }
};

struct SmallBinsPlan {
  SmallBinsAxis rows;
  SmallBinsAxis columns;
  Divisor by_side;
  Divisor by_bins;
  int side;
  int bins;  ///< The number of bins in all planes.
  bool is_adaptive;
  bool is_caffe;
  float x_scale;
  Quantizer quantizer;

  [[nodiscard]] __device__ int2 reach(const SmallBinsAxis& axis, int index) const {
    if (is_adaptive) {
      return {by_side.quotient(index * axis.size), by_side.quotient((index + 1) * axis.size + side - 1)};
    }
    const int begin = index * axis.step + axis.offset;
    return {::max(begin, 0), ::min(begin + axis.ceiling, axis.size)};
  }
};

template <class T, class Reduce>
__global__ void __launch_bounds__(spread_most_threads) pool_small_bins(const T* x, T* y, SmallBinsPlan plan) {
  using Policy = SmallBinsPolicy;
  const auto lane = static_cast<int>(threadIdx.x) % Policy::lanes;
  const auto task = static_cast<int>((blockIdx.x * blockDim.x + threadIdx.x) / Policy::lanes);
  const int plane = plan.by_bins.quotient(task);
  const int bin = task - plane * plan.side * plan.side;
  const int row = plan.by_side.quotient(bin);
  const int2 rows = plan.reach(plan.rows, row);
  const int2 columns = plan.reach(plan.columns, bin - row * plan.side);
  const int width = ::max(columns.y - columns.x, 0);
  const int elements = task < plan.bins ? ::max(rows.y - rows.x, 0) * width : 0;
  const T* from = x + (plane * plan.rows.size + rows.x) * plan.columns.size + columns.x;
  const float inverse = 1 / static_cast<float>(width);
  float loaded[Policy::loads];
#pragma unroll
  for (int i = 0; i < Policy::loads; ++i) {
    const int at = lane + i * Policy::lanes;
    // The quotient is exact for values this small.
    const auto line = static_cast<int>((static_cast<float>(at) + 0.5F) * inverse);
    loaded[i] =
        at < elements ? static_cast<float>(from[line * plan.columns.size + at - line * width]) : Reduce::identity();
  }
  float value = loaded[0];
#pragma unroll
  for (int i = 1; i < Policy::loads; ++i) value = Reduce::apply(value, loaded[i]);
  value = reduce_lanes<Reduce>(value, Policy::log2_lanes);
  if (lane != 0 || task >= plan.bins) return;
  const int count = plan.is_caffe ? plan.rows.ceiling * plan.columns.ceiling : elements;
  y[task] = to_output<T>(Reduce::finish(value, static_cast<float>(count)), plan.x_scale, plan.quantizer);
}

}  // namespace detail

[[nodiscard]] inline bool has_small_bins(const SpatialPyramidPooling& op, const Extents& x) {
  using Policy = detail::SmallBinsPolicy;
  if (op.levels.size() != 1) return false;
  const std::int64_t side = op.levels[0];
  // A bin has at most one element more than ceil(size / side) along an axis.
  return x.element_count() <= Policy::most && x[0] * x[1] * side * side <= Policy::most &&
         (ceil_divide(x[2], side) + 1) * (ceil_divide(x[3], side) + 1) <= Policy::lanes * Policy::loads;
}

/// Pools x to the bins of all levels, for a problem for which has_small_bins() is true.
template <class T, class Reduce>
[[nodiscard]] Status run_small_bins(const SpatialPyramidPooling& op, const Extents& extents, const T* x, T* y,
                                    const DeviceTraits& device, const CudaContext& context) {
  using namespace detail;
  const auto side = static_cast<int>(op.levels[0]);
  const SmallBinsPlan plan{.rows = SmallBinsAxis::make(op.binning, extents[2], side),
                           .columns = SmallBinsAxis::make(op.binning, extents[3], side),
                           .by_side = Divisor(side),
                           .by_bins = Divisor(side * side),
                           .side = side,
                           .bins = static_cast<int>(extents[0] * extents[1] * side * side),
                           .is_adaptive = op.binning == Binning::adaptive,
                           .is_caffe = op.binning == Binning::caffe,
                           .x_scale = op.x_scale,
                           .quantizer = Quantizer(op.y_scale)};
  const Grid grid = spread_grid(std::int64_t{plan.bins} * SmallBinsPolicy::lanes, device);
  return launch("SpatialPyramidPooling small bins", pool_small_bins<T, Reduce>, grid, context, x, y, plan);
}

}  // namespace graft::ops

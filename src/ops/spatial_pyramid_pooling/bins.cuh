// SpatialPyramidPooling for any number of bins: one warp per bin, which reads all elements of the bin.
#pragma once

#include "ops/spatial_pyramid_pooling/planes.cuh"

namespace graft::ops {
namespace detail {

inline constexpr int bins_threads = 128;

struct BinsPlan {
  std::int64_t planes = 0;
  std::int64_t channels = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t side = 0;          ///< The number of bins of the level along one side.
  std::int64_t first_output = 0;  ///< The first output of the level within an item.
  std::int64_t item_outputs = 0;
  Binning binning = Binning::adaptive;
  float x_scale = 1;
  Quantizer quantizer = {};
};

template <class T, class Reduce>
__global__ void __launch_bounds__(bins_threads) pool_bins(const T* x, T* y, BinsPlan plan) {
  constexpr int lanes = 32;
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const std::int64_t task =
      static_cast<std::int64_t>(blockIdx.x) * (bins_threads / lanes) + static_cast<int>(threadIdx.x) / lanes;
  const std::int64_t bins = plan.side * plan.side;
  if (task >= plan.planes * bins) return;
  const std::int64_t plane = task / bins;
  const std::int64_t bin = task - plane * bins;
  const Bin rows = bin_at(plan.binning, plan.height, plan.side, bin / plan.side);
  const Bin columns = bin_at(plan.binning, plan.width, plan.side, bin % plan.side);
  float value = Reduce::identity();
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const T* from = x + (plane * plan.height + row) * plan.width;
    for (std::int64_t column = columns.begin + lane; column < columns.end; column += lanes) {
      value = Reduce::apply(value, static_cast<float>(from[column]));
    }
  }
  value = reduce_lanes<Reduce>(value, 5);
  if (lane != 0) return;
  value = Reduce::finish(value, static_cast<float>(rows.divisor) * static_cast<float>(columns.divisor));
  const std::int64_t item = plane / plan.channels;
  const std::int64_t at = item * plan.item_outputs + plan.first_output + (plane - item * plan.channels) * bins + bin;
  y[at] = to_output<T>(value, plan.x_scale, plan.quantizer);
}

}  // namespace detail

/// Pools all levels, with one kernel launch per level.
template <class T, class Reduce>
[[nodiscard]] Status run_bins(const SpatialPyramidPooling& op, const Extents& extents, const T* x, T* y,
                              const CudaContext& context) {
  using namespace detail;
  BinsPlan plan{.planes = extents[0] * extents[1],
                .channels = extents[1],
                .height = extents[2],
                .width = extents[3],
                .item_outputs = extents[1] * op.bins_per_channel(),
                .binning = op.binning,
                .x_scale = op.x_scale,
                .quantizer = Quantizer(op.y_scale)};
  for (const std::int64_t side : op.levels) {
    plan.side = side;
    const Grid grid{ceil_divide(plan.planes * side * side, bins_threads / 32), bins_threads};
    if (Status status = launch("SpatialPyramidPooling bins", pool_bins<T, Reduce>, grid, context, x, y, plan);
        !status.ok()) {
      return status;
    }
    plan.first_output += extents[1] * side * side;
  }
  return {};
}

}  // namespace graft::ops

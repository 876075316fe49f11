// Reference kernel of SpatialPyramidPooling.
#include <cmath>
#include <limits>

#include "ops/reference.hpp"
#include "ops/spatial_pyramid_pooling/spatial_pyramid_pooling.hpp"

namespace graft::ops {
namespace {

/// Returns the average of the bin, or its maximum, which is NaN if the bin contains a NaN.
template <class Element>
double pool(const SpatialPyramidPooling& op, const Element* plane, std::int64_t width, const Bin& rows,
            const Bin& columns) {
  double maximum = -std::numeric_limits<double>::infinity();
  double sum = 0;
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    for (std::int64_t column = columns.begin; column < columns.end; ++column) {
      const double value = load(plane[row * width + column], op.x_scale);
      sum += value;
      if (value > maximum || std::isnan(value)) maximum = value;
    }
  }
  if (op.mode == PoolingMode::max) return maximum;
  return sum / (static_cast<double>(rows.divisor) * static_cast<double>(columns.divisor));
}

}  // namespace

Status run(const SpatialPyramidPooling& op, const Problem& problem, const Buffers& buffers, const CpuContext& context) {
  const Extents& extents = problem.inputs[0].extents;
  const std::int64_t channels = extents[1];
  const std::int64_t height = extents[2];
  const std::int64_t width = extents[3];
  const std::int64_t outputs = channels * op.bins_per_channel();
  return dispatch(problem.inputs[0].dtype, [&](auto element) -> Status {
    using Element = decltype(element);
    const auto* x = static_cast<const Element*>(buffers.inputs[0]);
    auto* y = static_cast<Element*>(buffers.outputs[0]);
    context.parallel_for(extents[0] * channels, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t plane = begin; plane < end; ++plane) {
        Element* level_start = y + plane / channels * outputs;
        for (const std::int64_t bins : op.levels) {
          Element* to = level_start + plane % channels * bins * bins;
          for (std::int64_t i = 0; i < bins * bins; ++i) {
            const Bin rows = bin_at(op.binning, height, bins, i / bins);
            const Bin columns = bin_at(op.binning, width, bins, i % bins);
            to[i] = store<Element>(pool(op, x + plane * height * width, width, rows, columns), op.y_scale);
          }
          level_start += channels * bins * bins;
        }
      }
    });
    return {};
  });
}

}  // namespace graft::ops

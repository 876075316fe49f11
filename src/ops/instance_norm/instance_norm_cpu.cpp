// Reference kernel of InstanceNorm.
#include <cmath>

#include "ops/instance_norm/instance_norm.hpp"
#include "ops/reference.hpp"

namespace graft::ops {

Status run(const InstanceNorm& op, const Problem& problem, const Buffers& buffers, const CpuContext& context) {
  const Extents& extents = problem.inputs[0].extents;
  const std::int64_t channels = extents[1];
  const std::int64_t items = extents[0] * channels;
  const std::int64_t count = problem.inputs[0].storage_count() / (items == 0 ? 1 : items);
  const auto* scale = static_cast<const float*>(buffers.inputs[1]);
  const auto* bias = static_cast<const float*>(buffers.inputs[2]);
  const double slope = op.negative_slope();
  return dispatch(problem.inputs[0].dtype, [&](auto element) -> Status {
    using Element = decltype(element);
    context.parallel_for(items, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t item = begin; item < end; ++item) {
        const auto* x = static_cast<const Element*>(buffers.inputs[0]) + item * count;
        auto* y = static_cast<Element*>(buffers.outputs[0]) + item * count;
        double sum = 0;
        for (std::int64_t i = 0; i < count; ++i) sum += load(x[i], op.x_scale);
        const double mean = sum / static_cast<double>(count);
        double squares = 0;
        for (std::int64_t i = 0; i < count; ++i) {
          const double deviation = load(x[i], op.x_scale) - mean;
          squares += deviation * deviation;
        }
        const double variance = squares / static_cast<double>(count);
        // The CUDA kernels store the variance in f32. Rounding to f32 here lets the reference overflow for the same
        // values.
        const bool overflows = std::isinf(static_cast<float>(variance));
        const double factor = overflows ? 0 : scale[item % channels] / std::sqrt(variance + op.epsilon);
        for (std::int64_t i = 0; i < count; ++i) {
          const double value = (load(x[i], op.x_scale) - mean) * factor + bias[item % channels];
          y[i] = store<Element>(value < 0 ? slope * value : value, op.y_scale);
        }
      }
    });
    return {};
  });
}

}  // namespace graft::ops

// Reference kernel of RmsNorm: computes in double, one row after the other.
#include <cmath>

#include "ops/reference.hpp"
#include "rms_norm/rms_norm.hpp"

graft::Status my_ops::run(const RmsNorm& op, const graft::Problem& problem, const graft::Buffers& buffers,
                          const graft::CpuContext& context) {
  const graft::Extents& extents = problem.inputs[0].extents;
  const std::int64_t columns = extents[extents.rank() - 1];
  if (extents.element_count() == 0) return {};
  return graft::ops::dispatch(problem.inputs[0].dtype, [&](auto element) -> graft::Status {
    using Element = decltype(element);
    context.parallel_for(extents.element_count() / columns, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const auto* x = static_cast<const Element*>(buffers.inputs[0]) + row * columns;
        auto* y = static_cast<Element*>(buffers.outputs[0]) + row * columns;
        double sum = 0;
        for (std::int64_t i = 0; i < columns; ++i) sum += std::pow(graft::ops::load(x[i], 1), 2);
        const double root = std::sqrt(sum / static_cast<double>(columns) + static_cast<double>(op.epsilon));
        for (std::int64_t i = 0; i < columns; ++i)
          y[i] = graft::ops::store<Element>(graft::ops::load(x[i], 1) / root, 1);
      }
    });
    return {};
  });
}

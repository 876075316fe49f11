// Reference kernel of Normalize.
#include "ops/inverse_norm.hpp"
#include "ops/normalize/normalize.hpp"
#include "ops/reduction.hpp"
#include "ops/reference.hpp"

namespace graft {

Status run(const Normalize& op, const Problem& problem, const Buffers& buffers, const CpuContext& context) {
  const Extents& extents = problem.inputs[0].extents;
  ReductionPlan plan;
  if (Status status = plan_reduction(extents, op.axes(extents.rank()), plan); !status.ok()) return status;
  const InverseNorm inverse_norm{op.epsilon, EpsilonMode::add};
  const auto* weights = static_cast<const float*>(buffers.inputs[1]);
  const std::int64_t per_channel =
      plan.reduced_count / std::max<std::int64_t>(extents[1], 1);  // neighbours of a vector that share a factor
  return dispatch(problem.inputs[0].dtype, [&](auto element) -> Status {
    using Element = decltype(element);
    const auto* x = static_cast<const Element*>(buffers.inputs[0]);
    auto* y = static_cast<Element*>(buffers.outputs[0]);
    context.parallel_for(plan.kept_count, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t vector = begin; vector < end; ++vector) {
        const std::int64_t base = offset_of(vector, plan.kept_extents, plan.kept_strides);
        const auto at = [&](std::int64_t i) { return base + offset_of(i, plan.reduced_extents, plan.reduced_strides); };
        double sum = 0;
        for (std::int64_t i = 0; i < plan.reduced_count; ++i) {
          const double value = load(x[at(i)], op.x_scale);
          sum += value * value;
        }
        // Every kernel holds the sum in f32, so it overflows alike.
        const double factor = inverse_norm(static_cast<double>(static_cast<float>(sum)));
        for (std::int64_t i = 0; i < plan.reduced_count; ++i) {
          const double weight = weights[op.channel_shared ? 0 : i / per_channel];
          y[at(i)] = store<Element>(load(x[at(i)], op.x_scale) * factor * weight, op.y_scale);
        }
      }
    });
    return {};
  });
}

}  // namespace graft

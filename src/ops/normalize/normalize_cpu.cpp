// Reference kernel of Normalize.
#include <algorithm>

#include "ops/norm_reference.hpp"
#include "ops/normalize/normalize.hpp"

namespace graft::ops {

Status run(const Normalize& op, const Problem& problem, const Buffers& buffers, const CpuContext& context) {
  const Extents& extents = problem.inputs[0].extents;
  ReductionPlan plan;
  if (Status status = plan_reduction(extents, op.axes(extents.rank()), plan); !status.ok()) return status;
  const auto* weights = static_cast<const float*>(buffers.inputs[1]);
  const std::int64_t per_channel =
      plan.reduced_count / std::max<std::int64_t>(extents[1], 1);  // the number of consecutive elements with one factor
  const auto weight = [&](std::int64_t i) {
    return static_cast<double>(weights[op.channel_shared ? 0 : i / per_channel]);
  };
  return normalize_cpu(op, plan, {op.epsilon, EpsilonMode::add}, weight, problem, buffers, context);
}

}  // namespace graft::ops

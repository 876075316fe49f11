// Reference kernel of L2Normalize.
#include "ops/l2_normalize/l2_normalize.hpp"
#include "ops/norm_reference.hpp"

namespace graft::ops {

Status run(const L2Normalize& op, const Problem& problem, const Buffers& buffers, const CpuContext& context) {
  ReductionPlan plan;
  if (Status status = plan_reduction(problem.inputs[0].extents, op.axes, plan); !status.ok()) return status;
  const auto no_weight = [](std::int64_t /*i*/) { return 1.; };
  return normalize_cpu(op, plan, {op.epsilon, op.epsilon_mode}, no_weight, problem, buffers, context);
}

}  // namespace graft::ops

// Reference kernel of BetaSwish.
#include "beta_swish/beta_swish.hpp"
#include "ops/reference.hpp"

graft::Status my_ops::run(const BetaSwish& op, const graft::Problem& problem, const graft::Buffers& buffers,
                          const graft::CpuContext& context) {
  return graft::ops::elementwise_cpu(op, problem, buffers, context);
}

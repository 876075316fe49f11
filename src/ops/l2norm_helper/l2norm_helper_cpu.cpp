// Reference kernel of L2NormHelper.
#include "ops/l2norm_helper/l2norm_helper.hpp"
#include "ops/reference.hpp"

namespace graft::ops {

Status run(const L2NormHelper& op, const Problem& problem, const Buffers& buffers, const CpuContext& context) {
  return elementwise_cpu(op, problem, buffers, context);
}

}  // namespace graft::ops

// Reference kernel of Swish.
#include "ops/reference.hpp"
#include "ops/swish/swish.hpp"

namespace graft::ops {

Status run(const Swish& op, const Problem& problem, const Buffers& buffers, const CpuContext& context) {
  return elementwise_cpu(op, problem, buffers, context);
}

}  // namespace graft::ops

// Reference kernel of LeakyReLU.
#include "ops/leaky_relu/leaky_relu.hpp"
#include "ops/reference.hpp"

namespace graft::ops {

Status run(const LeakyReLU& op, const Problem& problem, const Buffers& buffers, const CpuContext& context) {
  return elementwise_cpu(op, problem, buffers, context);
}

}  // namespace graft::ops

// CUDA kernels of L2NormHelper.
#include "kernels/elementwise.cuh"
#include "ops/l2norm_helper/l2norm_helper.hpp"

namespace graft::ops {

std::span<const Variant<L2NormHelper>> cuda_kernels(const L2NormHelper& /*op*/) {
  return elementwise_kernels<L2NormHelper>();
}

}  // namespace graft::ops

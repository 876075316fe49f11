// CUDA kernels of BetaSwish.
#include "beta_swish/beta_swish.hpp"
#include "kernels/elementwise.cuh"

std::span<const graft::Variant<my_ops::BetaSwish>> my_ops::cuda_kernels(const BetaSwish& /*op*/) {
  return graft::elementwise_kernels<BetaSwish>();
}

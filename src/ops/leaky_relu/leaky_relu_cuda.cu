// CUDA kernels of LeakyReLU.
#include "kernels/elementwise.cuh"
#include "ops/leaky_relu/leaky_relu.hpp"

namespace graft::ops {

std::span<const Variant<LeakyReLU>> cuda_kernels(const LeakyReLU& /*op*/) { return elementwise_kernels<LeakyReLU>(); }

}  // namespace graft::ops

// CUDA kernels of L2Normalize.
#include "kernels/norm_kernels.cuh"
#include "ops/l2_normalize/l2_normalize.hpp"

namespace graft::ops {
namespace {

struct Traits {
  using Op = L2Normalize;
  static std::span<const std::int64_t> axes(const L2Normalize& op, const Problem& /*problem*/) { return op.axes; }
  static Normalizer normalizer(const L2Normalize& op) {
    return {{op.epsilon, op.epsilon_mode}, op.x_scale, op.y_scale};
  }
  static ChannelWeights weights(const L2Normalize& /*op*/, const Problem& /*problem*/, const Buffers& /*buffers*/) {
    return {};
  }
};

}  // namespace

std::span<const Variant<L2Normalize>> cuda_kernels(const L2Normalize& /*op*/) { return norm_kernels<Traits>(); }

}  // namespace graft::ops

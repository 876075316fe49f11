// CUDA kernels of Normalize.
#include "kernels/norm_kernels.cuh"
#include "ops/normalize/normalize.hpp"

namespace graft::ops {
namespace {

struct Traits {
  using Op = Normalize;
  static std::span<const std::int64_t> axes(const Normalize& op, const Problem& problem) {
    return op.axes(problem.inputs[0].extents.rank());
  }
  static Normalizer normalizer(const Normalize& op) { return {{op.epsilon, EpsilonMode::add}, op.x_scale, op.y_scale}; }
  static ChannelWeights weights(const Normalize& op, const Problem& problem, const Buffers& buffers) {
    const Extents& extents = problem.inputs[0].extents;
    std::int64_t inner = 1;
    for (int axis = 2; op.across_spatial && axis < extents.rank(); ++axis) inner *= extents[axis];
    return {.values = static_cast<const float*>(buffers.inputs[1]),
            .inner = op.channel_shared ? 0 : inner,
            .aligned = is_aligned(buffers.inputs[1], sizeof(float4))};
  }
};

}  // namespace

std::span<const Variant<Normalize>> cuda_kernels(const Normalize& /*op*/) { return norm_kernels<Traits>(); }

}  // namespace graft::ops

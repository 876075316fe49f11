// CUDA kernel of FastNormalizedFusion, in f32: one thread per element, which reads the element of every tensor.
#include "fast_normalized_fusion/fast_normalized_fusion.hpp"
#include "kernels/launch.cuh"
#include "kernels/vector.cuh"

namespace my {
namespace {

constexpr int threads = 256;

/// The addresses of the tensors, a kernel argument with room for as many as a node may have.
template <class T>
struct Maps {
  const T* at[graft::TypeRow::max_ports];
  int count;
};

template <class T>
__global__ void weighted_mean(const T* w, Maps<T> maps, T* y, std::int64_t count, float epsilon) {
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  if (at >= count) return;
  float divisor = epsilon;
  for (int i = 0; i < maps.count; ++i) {
    const auto weight = static_cast<float>(w[i]);
    divisor += weight < 0 ? 0 : weight;
  }
  float sum = 0;
  for (int i = 0; i < maps.count; ++i) {
    const auto weight = static_cast<float>(w[i]);
    sum += (weight < 0 ? 0 : weight) / divisor * static_cast<float>(maps.at[i][at]);
  }
  y[at] = static_cast<T>(sum);
}

graft::Status fits(const FastNormalizedFusion& /*op*/, const graft::Problem& /*problem*/) { return {}; }

graft::Status run_scalar(const FastNormalizedFusion& op, const graft::Problem& problem, const graft::Buffers& buffers,
                         const graft::CudaContext& context) {
  return graft::dispatch_device(problem.inputs[0].dtype, [&](auto element) {
    using T = decltype(element);
    Maps<T> maps{{}, static_cast<int>(problem.inputs.size()) - 1};
    for (int i = 0; i < maps.count; ++i) maps.at[i] = static_cast<const T*>(buffers.inputs[1 + i]);
    const std::int64_t count = problem.outputs[0].extents.element_count();
    return graft::launch(FastNormalizedFusion::name, weighted_mean<T>, {graft::ceil_divide(count, threads), threads},
                         context, static_cast<const T*>(buffers.inputs[0]), maps, static_cast<T*>(buffers.outputs[0]),
                         count, op.epsilon);
  });
}

}  // namespace

std::span<const graft::Variant<FastNormalizedFusion>> cuda_kernels(const FastNormalizedFusion& /*op*/) {
  static constexpr std::array variants{graft::Variant<FastNormalizedFusion>{"scalar", fits, run_scalar}};
  return variants;
}

}  // namespace my

// CUDA kernel of GatedTanh: one thread per element, in f32.
#include "gated_tanh/gated_tanh.hpp"
#include "kernels/launch.cuh"
#include "kernels/vector.cuh"

namespace my_ops {
namespace {

constexpr int threads = 256;

template <class T>
__global__ void gated_tanh_elements(const T* x, const T* gate, T* y, std::int64_t count, float steepness) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  if (i >= count) return;
  const float share = 1.F / (1.F + expf(-steepness * static_cast<float>(gate[i])));
  y[i] = static_cast<T>(tanhf(static_cast<float>(x[i])) * share);
}

graft::Status fits(const GatedTanh& /*op*/, const graft::Problem& /*problem*/) { return {}; }

graft::Status run_scalar(const GatedTanh& op, const graft::Problem& problem, const graft::Buffers& buffers,
                         const graft::CudaContext& context) {
  return graft::dispatch_device(problem.inputs[0].dtype, [&](auto element) {
    using T = decltype(element);
    const std::int64_t count = problem.inputs[0].extents.element_count();
    return graft::launch(GatedTanh::name, gated_tanh_elements<T>, {graft::ceil_divide(count, threads), threads},
                         context, static_cast<const T*>(buffers.inputs[0]), static_cast<const T*>(buffers.inputs[1]),
                         static_cast<T*>(buffers.outputs[0]), count, op.steepness);
  });
}

}  // namespace

/// Returns the kernels, best first. The first one that fits a problem runs.
std::span<const graft::Variant<GatedTanh>> cuda_kernels(const GatedTanh& /*op*/) {
  static constexpr std::array variants{graft::Variant<GatedTanh>{"scalar", fits, run_scalar}};
  return variants;
}

}  // namespace my_ops

// CUDA kernel of SplitSign: a thread for each element.
#include "kernels/launch.cuh"
#include "kernels/vector.cuh"
#include "split_sign/split_sign.hpp"

namespace my {
namespace {

constexpr int threads = 256;

template <class T>
__global__ void split_sign_kernel(const T* x, T* positive, T* negative, std::int64_t count) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  if (i >= count) return;
  const auto value = static_cast<float>(x[i]);
  positive[i] = value < 0 ? T(0.F) : x[i];
  negative[i] = value > 0 ? T(0.F) : x[i];
}

graft::Status fits(const SplitSign& /*op*/, const graft::Problem& /*problem*/) { return {}; }

graft::Status run_scalar(const SplitSign& /*op*/, const graft::Problem& problem, const graft::Buffers& buffers,
                         const graft::CudaContext& context) {
  return graft::dispatch_device(problem.inputs[0].dtype, [&](auto element) {
    using T = decltype(element);
    const std::int64_t count = problem.inputs[0].extents.element_count();
    return graft::launch(SplitSign::name, split_sign_kernel<T>, {graft::ceil_divide(count, threads), threads}, context,
                         static_cast<const T*>(buffers.inputs[0]), static_cast<T*>(buffers.outputs[0]),
                         static_cast<T*>(buffers.outputs[1]), count);
  });
}

}  // namespace

std::span<const graft::Variant<SplitSign>> cuda_kernels(const SplitSign& /*op*/) {
  static constexpr std::array variants{graft::Variant<SplitSign>{"scalar", fits, run_scalar}};
  return variants;
}

}  // namespace my

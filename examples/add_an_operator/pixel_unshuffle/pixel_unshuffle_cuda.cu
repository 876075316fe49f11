// CUDA kernel of PixelUnshuffle: a thread for each element of the output.
#include "kernels/launch.cuh"
#include "kernels/vector.cuh"
#include "pixel_unshuffle/pixel_unshuffle.hpp"

namespace my {
namespace {

constexpr int threads = 256;

/// The sizes of the output, and the factor.
struct Sizes {
  std::int64_t channels, height, width, factor;
};

template <class T>
__global__ void pixel_unshuffle_kernel(const T* x, T* y, Sizes to, std::int64_t count) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  if (i >= count) return;
  const std::int64_t w = i % to.width;
  const std::int64_t h = i / to.width % to.height;
  const std::int64_t channel = i / to.width / to.height % to.channels;
  const std::int64_t n = i / to.width / to.height / to.channels;
  const std::int64_t row = h * to.factor + channel / to.factor % to.factor;
  const std::int64_t column = w * to.factor + channel % to.factor;
  const std::int64_t plane = n * (to.channels / to.factor / to.factor) + channel / to.factor / to.factor;
  y[i] = x[(plane * to.height * to.factor + row) * to.width * to.factor + column];
}

graft::Status fits(const PixelUnshuffle& /*op*/, const graft::Problem& /*problem*/) { return {}; }

graft::Status run_scalar(const PixelUnshuffle& op, const graft::Problem& problem, const graft::Buffers& buffers,
                         const graft::CudaContext& context) {
  return graft::dispatch_device(problem.inputs[0].dtype, [&](auto element) {
    using T = decltype(element);
    const graft::Extents& y = problem.outputs[0].extents;
    const std::int64_t count = y.element_count();
    return graft::launch(PixelUnshuffle::name, pixel_unshuffle_kernel<T>, {graft::ceil_divide(count, threads), threads},
                         context, static_cast<const T*>(buffers.inputs[0]), static_cast<T*>(buffers.outputs[0]),
                         Sizes{y[1], y[2], y[3], op.factor}, count);
  });
}

}  // namespace

std::span<const graft::Variant<PixelUnshuffle>> cuda_kernels(const PixelUnshuffle& /*op*/) {
  static constexpr std::array variants{graft::Variant<PixelUnshuffle>{"scalar", fits, run_scalar}};
  return variants;
}

}  // namespace my

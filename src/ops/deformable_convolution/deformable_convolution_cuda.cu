// The CUDA variants of DeformableConvolution, and the kernel for any problem.
#include "kernels/launch.cuh"
#include "kernels/vector.cuh"
#include "ops/deformable_convolution/kernels.hpp"
#include "ops/deformable_convolution/plan.hpp"
#include "ops/deformable_convolution/sampling.hpp"

namespace graft::ops {
namespace {

template <class T>
__device__ float sample_image(const T* image, const DeformableSizes& sizes, const DeformablePosition& position) {
  float sum = 0;
  if (!position.is_near) return sum;
  for (int corner = 0; corner < 4; ++corner) {
    const std::int64_t row = std::int64_t{position.row} + corner / 2;
    const std::int64_t column = std::int64_t{position.column} + corner % 2;
    if (row < 0 || row >= sizes.rows.in || column < 0 || column >= sizes.columns.in) continue;
    const float weight = (corner / 2 == 0 ? 1.F - position.down : position.down) *
                         (corner % 2 == 0 ? 1.F - position.across : position.across);
    sum = fmaf(weight, static_cast<float>(image[row * sizes.columns.in + column]), sum);
  }
  return sum;
}

/// Computes one element of y per thread. Adjacent threads compute adjacent pixels of one channel.
template <class T>
__global__ void deformable_direct(const T* x, const T* weight, const T* offset, const T* bias, const T* mask, T* y,
                                  const DeformableSizes sizes, std::int64_t results) {
  const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= results) return;
  const std::int64_t pixels = sizes.out_pixels();
  const std::int64_t pixel = index % pixels;
  const std::int64_t k = index / pixels % sizes.outputs;
  const std::int64_t n = index / pixels / sizes.outputs;
  const std::int64_t group_channels = sizes.group_channels();
  const std::int64_t offset_channels = sizes.channels / sizes.offset_groups;
  const std::int64_t taps = sizes.taps();
  const std::int64_t first_row = pixel / sizes.columns.out * sizes.rows.stride - sizes.rows.pad;
  const std::int64_t first_column = pixel % sizes.columns.out * sizes.columns.stride - sizes.columns.pad;
  const std::int64_t first_channel = k / sizes.group_outputs() * group_channels;
  const T* const filter = weight + (k * group_channels - first_channel) * taps;
  float sum = sizes.has_bias ? static_cast<float>(bias[k]) : 0.F;
  std::int64_t channel = first_channel;
  while (channel < first_channel + group_channels) {
    const std::int64_t of = channel / offset_channels;
    const std::int64_t end = ::min(first_channel + group_channels, (of + 1) * offset_channels);
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      const std::int64_t plane = (n * sizes.offset_groups + of) * taps + tap;
      const DeformablePosition position = deformable_position(
          first_row + tap / sizes.columns.kernel * sizes.rows.dilation,
          first_column + tap % sizes.columns.kernel * sizes.columns.dilation,
          static_cast<float>(offset[2 * plane * pixels + pixel]),
          static_cast<float>(offset[(2 * plane + 1) * pixels + pixel]), sizes.rows.in, sizes.columns.in);
      const float factor = sizes.has_mask ? static_cast<float>(mask[plane * pixels + pixel]) : 1.F;
      // The taps are summed separately, so that no single sum has all of the terms, which may be many.
      float sum_of_tap = 0;
      for (std::int64_t c = channel; c < end; ++c) {
        const T* const image = x + (n * sizes.channels + c) * sizes.in_pixels();
        const float value = factor * sample_image(image, sizes, position);
        sum_of_tap = fmaf(static_cast<float>(filter[c * taps + tap]), value, sum_of_tap);
      }
      sum += sum_of_tap;
    }
    channel = end;
  }
  y[index] = static_cast<T>(sum);
}

Status fits_deformable_direct(const DeformableConvolution& /*op*/, const Problem& /*problem*/) { return {}; }

}  // namespace

Status run_deformable_direct(const DeformableConvolution& op, const Problem& problem, const Buffers& buffers,
                             const CudaContext& context) {
  constexpr int threads = 256;
  const DeformableSizes sizes(op, problem);
  const std::int64_t results = problem.outputs[0].extents.element_count();
  const Grid grid{.blocks = ceil_divide(results, threads), .threads = threads};
  const auto run = [&](auto element) {
    using T = decltype(element);
    const auto input = [&](std::size_t port) { return static_cast<const T*>(buffers.inputs[port]); };
    return launch(DeformableConvolution::name, deformable_direct<T>, grid, context, input(DeformableConvolution::x),
                  input(DeformableConvolution::weight), input(DeformableConvolution::offset),
                  input(DeformableConvolution::bias), input(DeformableConvolution::mask),
                  static_cast<T*>(buffers.outputs[0]), sizes, results);
  };
  switch (problem.inputs[DeformableConvolution::x].dtype) {
    case DType::f16: return run(__half{});
    case DType::bf16: return run(__nv_bfloat16{});
    default: return run(float{});
  }
}

std::span<const Variant<DeformableConvolution>> cuda_kernels(const DeformableConvolution& /*op*/) {
  static constexpr std::array variants{
      Variant<DeformableConvolution>{"tensor_core", fits_deformable_tensor_core, run_deformable_tensor_core},
      Variant<DeformableConvolution>{"direct", fits_deformable_direct, run_deformable_direct}};
  return variants;
}

}  // namespace graft::ops

// Convolution of any rank, layout, type and group, with one thread per element of y. Its loads are neither shared nor
// wide.
#include "kernels/launch.cuh"
#include "kernels/strides.cuh"
#include "kernels/vector.cuh"
#include "ops/convolution/plan.hpp"
#include "ops/convolution/variants.hpp"

namespace graft::ops {
namespace {

constexpr int direct_threads = 256;

/// The distances, in elements, between adjacent images, vectors of channels and pixels of a tensor N,C,spatial or
/// K,C,window.
struct ChannelStrides {
  std::int64_t image;   ///< The distance from one image or filter to the next.
  std::int64_t vector;  ///< The distance from one vector of channels to the next.
  std::int64_t pixel;
  int width;  ///< The number of channels in a vector.

  [[nodiscard]] static ChannelStrides of(Layout layout, std::int64_t channels, std::int64_t pixels) {
    const std::int64_t width = channels_per_vector(layout);
    const std::int64_t padded = ceil_divide(channels, width) * width;
    const std::int64_t image = padded * pixels;
    if (layout == Layout::hwc8) return {.image = image, .vector = width, .pixel = padded, .width = 8};
    if (layout == Layout::chw32) return {.image = image, .vector = pixels * width, .pixel = width, .width = 32};
    return {.image = image, .vector = pixels, .pixel = 1, .width = 1};
  }
  [[nodiscard]] __device__ std::int64_t channel(std::int64_t c) const {
    if (width == 1) return c * vector;
    const auto index = static_cast<unsigned>(c);
    const auto size = static_cast<unsigned>(width);
    return static_cast<std::int64_t>(index / size) * vector + index % size;
  }
};

struct DirectTask {
  ConvolutionPlan plan;
  ConvolutionEpilogue epilogue;
  ChannelStrides x;
  ChannelStrides weight;
  ChannelStrides y;
  std::int64_t stored_outputs;  ///< The number of channels of y, including padding.
  std::int64_t count;           ///< The number of stored elements of y.
};

/// Computes one stored element of y per thread. Threads of a warp process adjacent elements: pixels, or channels of a
/// vector.
template <class T>
__global__ void __launch_bounds__(direct_threads)
    direct(DirectTask task, const T* x, const T* weight, const float* bias, const float* scale, T* y) {
  using Sum = std::conditional_t<std::is_same_v<T, std::int8_t>, int, float>;
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * direct_threads + threadIdx.x;
  if (i >= task.count) return;
  const ConvolutionPlan& plan = task.plan;
  const std::int64_t pixels = plan.out_pixels();
  const std::int64_t vectors = task.stored_outputs / task.y.width;
  // `i` counts the lanes of a vector first, and then the units that are adjacent in memory: vectors of a pixel (hwc8)
  // or pixels.
  std::int64_t rest = divide(i, task.y.width);
  const std::int64_t lane = i - rest * task.y.width;
  const bool vectors_first = task.y.width > 1 && task.y.vector == task.y.width;
  const std::int64_t inner = vectors_first ? vectors : pixels;
  std::int64_t outer = divide(rest, inner);
  const std::int64_t at_inner = rest - outer * inner;
  const std::int64_t middle = vectors_first ? pixels : vectors;
  const std::int64_t n = divide(outer, middle);
  const std::int64_t at_middle = outer - n * middle;
  const std::int64_t pixel = vectors_first ? at_middle : at_inner;
  const std::int64_t k = (vectors_first ? at_inner : at_middle) * task.y.width + lane;
  T& result = y[n * task.y.image + task.y.channel(k) + pixel * task.y.pixel];
  if (k >= plan.outputs) {
    result = T(0.F);
    return;
  }
  const auto& [depth, height, width] = plan.axis;
  const std::int64_t row = divide(pixel, width.out);
  const std::int64_t z = divide(row, height.out);
  const std::int64_t first_z = z * depth.stride - depth.pad;
  const std::int64_t first_y = (row - z * height.out) * height.stride - height.pad;
  const std::int64_t first_x = (pixel - row * width.out) * width.stride - width.pad;
  const std::int64_t first_channel = divide(k, plan.group_outputs()) * plan.group_channels();
  const T* image = x + n * task.x.image;
  const T* filter = weight + k * task.weight.image;
  Sum sum = 0;
  const auto channels = static_cast<int>(plan.group_channels());
  for (int c = 0; c < channels; ++c) {
    const T* plane = image + task.x.channel(first_channel + c);
    const T* taps = filter + task.weight.channel(c);
    for (std::int64_t t = 0; t < depth.kernel; ++t) {
      const std::int64_t in_z = first_z + t * depth.dilation;
      for (std::int64_t r = 0; r < height.kernel; ++r) {
        const std::int64_t in_y = first_y + r * height.dilation;
        const bool inside = in_z >= 0 && in_z < depth.in && in_y >= 0 && in_y < height.in;
        const T* line = plane + (in_z * height.in + in_y) * width.in * task.x.pixel;
        for (std::int64_t s = 0; s < width.kernel; ++s) {
          const std::int64_t in_x = first_x + s * width.dilation;
          const T value = inside && in_x >= 0 && in_x < width.in ? line[in_x * task.x.pixel] : T(0.F);
          sum += static_cast<Sum>(value) * static_cast<Sum>(*taps);
          taps += task.weight.pixel;
        }
      }
    }
  }
  const float value = task.epilogue.apply(static_cast<float>(sum), task.epilogue.factor(scale[k]), bias[k]);
  if constexpr (std::is_same_v<T, std::int8_t>)
    result = quantize_device(value, task.epilogue.y_scale);
  else
    result = static_cast<T>(value);
}

}  // namespace

Status direct_fits(const Convolution& /*op*/, const Problem& problem) {
  constexpr std::int64_t most = std::int64_t{1} << 30;
  if (problem.inputs[Convolution::weight].extents[1] < most) return {};
  return unsupported("supports up to " + std::to_string(most) + " channels in a group");
}

Status direct_run(const Convolution& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
  const TensorDesc& to = problem.outputs[0];
  const ConvolutionPlan plan = plan_convolution(op, problem);
  if (to.extents.element_count() == 0) return {};
  const std::int64_t vector = channels_per_vector(to.layout);
  const DirectTask task{.plan = plan,
                        .epilogue = ConvolutionEpilogue::of(op, to.dtype),
                        .x = ChannelStrides::of(to.layout, plan.channels, plan.in_pixels()),
                        .weight = ChannelStrides::of(to.layout, plan.group_channels(), plan.window()),
                        .y = ChannelStrides::of(to.layout, plan.outputs, plan.out_pixels()),
                        .stored_outputs = ceil_divide(plan.outputs, vector) * vector,
                        .count = to.storage_count()};
  return dispatch_device(to.dtype, [&](auto element) {
    using T = decltype(element);
    return launch("Convolution direct", direct<T>, {ceil_divide(task.count, direct_threads), direct_threads}, context,
                  task, static_cast<const T*>(buffers.inputs[Convolution::x]),
                  static_cast<const T*>(buffers.inputs[Convolution::weight]),
                  static_cast<const float*>(buffers.inputs[Convolution::bias]),
                  static_cast<const float*>(buffers.inputs[Convolution::scale]), static_cast<T*>(buffers.outputs[0]));
  });
}

}  // namespace graft::ops

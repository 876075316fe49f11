// Convolution of every channel by itself (group = channels of x = channels of y), limited by the memory's speed: each
// thread keeps a strip of results, so that neighbouring windows share what was loaded.
#include <limits>

#include "kernels/divisor.cuh"
#include "kernels/launch.cuh"
#include "kernels/mma.cuh"
#include "kernels/vector.cuh"
#include "ops/convolution/plan.hpp"
#include "ops/convolution/variants.hpp"

namespace graft {
namespace {

constexpr int depthwise_threads = 256;
constexpr std::int64_t most_window = 96;  // of 64 channels, in shared memory

/// A tensor is `images` of height x width pixels with `channels` each side by side: planes of one channel (linear),
/// images of all (hwc8), blocks of 32 (chw32).
struct DepthwiseTask {
  const void* x;
  const void* weight;
  const float* bias;
  const float* scale;
  void* y;
  ConvolutionEpilogue epilogue;

  int images_of_batch;  ///< Of one item of the batch.
  int channels;         ///< Of an image, with padding.
  int all_channels;     ///< Of x, without padding.
  int weight_pitch;     ///< Elements from one element of a window to the next one.
  int height;
  int width;
  int out_height;
  int out_width;
  int kernel_height;
  int kernel_width;
  int row_stride;
  int column_stride;
  int row_pad;
  int column_pad;
  int row_dilation;
  int column_dilation;

  // Vectors: a block takes `lanes` vectors of the same channels for several strips. Linear: a thread takes one strip.
  int lanes;
  int lane_tiles;
  int strips;
  Divisor by_strips;
  std::int64_t count;  ///< Vectors: strips of the whole batch for the same channels. Linear: strips of all images.
};

/// Strips along a row: Strip results of the vectors' 16 bytes of channels. Kernel and Stride are 0 where they are not
/// known.
///
/// Sums of i8 are exact in f32 too: most_window products of at most 2^14.
template <class T, int Kernel, int Stride, int Strip>
__global__ void __launch_bounds__(depthwise_threads) depthwise_vectors(const DepthwiseTask task) {
  constexpr int count = widest<T>;
  using V = Vector<T, count>;
  const int window_height = Kernel > 0 ? Kernel : task.kernel_height;
  const int window_width = Kernel > 0 ? Kernel : task.kernel_width;
  const int step = Stride > 0 ? Stride : task.column_stride;
  const int window = window_height * window_width;
  extern __shared__ float4 filters[];  // [window][lanes * count]
  const int thread = static_cast<int>(threadIdx.x);
  const int tile = static_cast<int>(blockIdx.x) % task.lane_tiles;
  const std::int64_t first_strip =
      static_cast<std::int64_t>(blockIdx.x / static_cast<unsigned>(task.lane_tiles)) * (depthwise_threads / task.lanes);
  const int width = task.lanes * count;
  const int first_channel = tile * width;

  const auto own = first_strip + thread / task.lanes;
  const bool active = thread < depthwise_threads / task.lanes * task.lanes && own < task.count;
  const int lane = thread % task.lanes;
  const int channel = first_channel + lane * count;
  const std::int64_t row_and_item = active ? own / task.strips : 0;
  const int strip = static_cast<int>(own - row_and_item * task.strips);
  const std::int64_t item = row_and_item / task.out_height;
  const int y_row = static_cast<int>(row_and_item - item * task.out_height);
  const bool blocked = task.images_of_batch > 1;  // an image is one tile's channels
  const std::int64_t image = blocked ? item * task.images_of_batch + tile : item;
  const int at = blocked ? lane * count : channel;

  const T* const weight = static_cast<const T*>(task.weight);
  for (int i = thread; i < window * width; i += depthwise_threads) {
    const int c = first_channel + i % width;
    const T* filter = weight + (static_cast<std::int64_t>(c) * window + i / width) * task.weight_pitch;
    reinterpret_cast<float*>(filters)[i] = c < task.all_channels ? static_cast<float>(*filter) : 0.F;
  }
  __syncthreads();
  if (!active || at >= task.channels) return;

  float sums[Strip][count] = {};
  const int x_row = y_row * task.row_stride - task.row_pad;
  const int x_column = strip * Strip * step - task.column_pad;
  const T* const from = static_cast<const T*>(task.x) + image * task.height * task.width * task.channels + at;
  const auto add = [&](float(&sum)[count], const float(&values)[count], int tap) {
    const float4* filter = filters + (tap * width + lane * count) / 4;
#pragma unroll
    for (int i = 0; i < count / 4; ++i) {
      const float4 four = filter[i];
      sum[4 * i] += values[4 * i] * four.x;
      sum[4 * i + 1] += values[4 * i + 1] * four.y;
      sum[4 * i + 2] += values[4 * i + 2] * four.z;
      sum[4 * i + 3] += values[4 * i + 3] * four.w;
    }
  };
#pragma unroll
  for (int r = 0; r < (Kernel > 0 ? Kernel : window_height); ++r) {
    const int row = x_row + r * task.row_dilation;
    const bool row_inside = row >= 0 && row < task.height;
    const T* const line = from + static_cast<std::int64_t>(row) * task.width * task.channels;
    const auto load = [&](int column, float(&values)[count]) {
      const bool inside = row_inside && column >= 0 && column < task.width;
      (inside ? V::load(line + static_cast<std::int64_t>(column) * task.channels) : V::zero()).unpack(values);
    };
    if constexpr (Kernel > 0) {
#pragma unroll
      for (int c = 0; c < (Strip - 1) * Stride + Kernel; ++c) {
        float values[count];
        load(x_column + c, values);
#pragma unroll
        for (int t = 0; t < Strip; ++t) {
          const int s = c - t * Stride;
          if (s >= 0 && s < Kernel) add(sums[t], values, r * Kernel + s);
        }
      }
    } else {
      for (int s = 0; s < window_width; ++s) {
#pragma unroll
        for (int t = 0; t < Strip; ++t) {
          float values[count];
          load(x_column + t * step + s * task.column_dilation, values);
          add(sums[t], values, r * window_width + s);
        }
      }
    }
  }

  float biases[count];
  float factors[count];
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const bool exists = channel + i < task.all_channels;
    biases[i] = exists ? task.bias[channel + i] : 0.F;
    factors[i] = exists ? task.epilogue.factor(task.scale[channel + i]) : 0.F;
  }
  T* const to = static_cast<T*>(task.y) +
                ((image * task.out_height + y_row) * task.out_width + strip * Strip) * task.channels + at;
#pragma unroll
  for (int t = 0; t < Strip; ++t) {
    if (strip * Strip + t >= task.out_width) break;
    alignas(16) T results[count];
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const float value = task.epilogue.apply(sums[t][i], factors[i], biases[i]);
      const bool exists = channel + i < task.all_channels;
      if constexpr (std::is_same_v<T, std::int8_t>)
        results[i] = exists ? quantize_device(value, task.epilogue.y_scale) : T(0);
      else
        results[i] = exists ? static_cast<T>(value) : T(0.F);
    }
    *reinterpret_cast<uint4*>(to + static_cast<std::int64_t>(t) * task.channels) = *reinterpret_cast<uint4*>(results);
  }
}

/// Strips down a column, so that neighbouring threads read neighbours.
template <class T, int Kernel, int Stride, int Strip>
__global__ void __launch_bounds__(depthwise_threads) depthwise_planes(const DepthwiseTask task) {
  using Sum = SumOf<T>;
  const std::int64_t own = static_cast<std::int64_t>(blockIdx.x) * depthwise_threads + threadIdx.x;
  if (own >= task.count) return;
  // Columns run fastest, then strips, then planes.
  const std::int64_t image = own / (static_cast<std::int64_t>(task.strips) * task.out_width);
  const int in_image = static_cast<int>(own - image * task.strips * task.out_width);
  const int strip = task.by_strips.quotient(in_image);
  const int y_column = in_image - strip * task.out_width;
  const int channel = static_cast<int>(image % task.all_channels);
  const int x_column = y_column * Stride - task.column_pad;
  const int x_row = strip * Strip * Stride - task.row_pad;
  const T* const from = static_cast<const T*>(task.x) + image * task.height * task.width;
  const T* const weight = static_cast<const T*>(task.weight) + static_cast<std::int64_t>(channel) * Kernel * Kernel;
  Sum filter[Kernel][Kernel];
#pragma unroll
  for (int i = 0; i < Kernel * Kernel; ++i) filter[i / Kernel][i % Kernel] = static_cast<Sum>(weight[i]);
  Sum sums[Strip] = {};
#pragma unroll
  for (int line = 0; line < (Strip - 1) * Stride + Kernel; ++line) {
    const int row = x_row + line;
    const bool row_inside = row >= 0 && row < task.height;
#pragma unroll
    for (int s = 0; s < Kernel; ++s) {
      const int column = x_column + s;
      const bool inside = row_inside && column >= 0 && column < task.width;
      const Sum value = inside ? static_cast<Sum>(from[static_cast<std::int64_t>(row) * task.width + column]) : Sum(0);
#pragma unroll
      for (int t = 0; t < Strip; ++t) {
        const int r = line - t * Stride;
        if (r >= 0 && r < Kernel) sums[t] += value * filter[r][s];
      }
    }
  }
  const float bias = task.bias[channel];
  const float factor = task.epilogue.factor(task.scale[channel]);
  T* const to = static_cast<T*>(task.y) + (image * task.out_height + strip * Strip) * task.out_width + y_column;
#pragma unroll
  for (int t = 0; t < Strip; ++t) {
    if (strip * Strip + t >= task.out_height) break;
    const float value = task.epilogue.apply(static_cast<float>(sums[t]), factor, bias);
    if constexpr (std::is_same_v<T, std::int8_t>)
      to[static_cast<std::int64_t>(t) * task.out_width] = quantize_device(value, task.epilogue.y_scale);
    else
      to[static_cast<std::int64_t>(t) * task.out_width] = static_cast<T>(value);
  }
}

template <class T, int Kernel, int Stride>
Status launch_vectors(DepthwiseTask task, const CudaContext& context) {
  constexpr int strip = std::is_same_v<T, std::int8_t> ? 2 : 4;
  constexpr int most_lanes = 8;  // 128 bytes side by side
  const int vectors = task.channels / widest<T>;
  const auto tiles = static_cast<int>(ceil_divide(vectors, most_lanes));
  task.lanes = static_cast<int>(ceil_divide(vectors, tiles));
  task.lane_tiles = tiles * task.images_of_batch;
  task.strips = static_cast<int>(ceil_divide(task.out_width, strip));
  task.count *= std::int64_t{task.strips} * task.out_height;
  const int window = task.kernel_height * task.kernel_width;
  const Grid grid{.blocks = ceil_divide(task.count, depthwise_threads / task.lanes) * task.lane_tiles,
                  .threads = depthwise_threads,
                  .cluster = 1,
                  .shared_bytes = window * task.lanes * widest<T> * 4};
  return launch("Convolution depthwise", depthwise_vectors<T, Kernel, Stride, strip>, grid, context, task);
}

template <class T, int Kernel, int Stride>
Status launch_planes(DepthwiseTask task, const CudaContext& context) {
  constexpr int strip = 4;
  task.strips = static_cast<int>(ceil_divide(task.out_height, strip));
  task.by_strips = Divisor(task.out_width);
  task.count *= std::int64_t{task.strips} * task.out_width;
  const Grid grid{ceil_divide(task.count, depthwise_threads), depthwise_threads};
  return launch("Convolution depthwise", depthwise_planes<T, Kernel, Stride, strip>, grid, context, task);
}

/// 3 x 3 or 5 x 5, step 1 or 2, no dilation; what most networks have, and all that linear layouts get here.
bool is_usual(const ConvolutionPlan& plan) {
  const auto& [depth, height, width] = plan.axis;
  return height.kernel == width.kernel && (width.kernel == 3 || width.kernel == 5) && height.stride == width.stride &&
         width.stride <= 2 && height.dilation == 1 && width.dilation == 1;
}

}  // namespace

Status depthwise_fits(const Convolution& op, const Problem& problem) {
  const TensorDesc& x = problem.inputs[Convolution::x];
  const ConvolutionPlan plan = plan_convolution(op, problem);
  const auto& [depth, height, width] = plan.axis;
  if (plan.group != plan.channels || plan.outputs != plan.channels) return unsupported("takes groups of one channel");
  if (depth.in != 1 || depth.kernel != 1 || depth.out != 1) return unsupported("takes 1 or 2 spatial axes");
  if (x.layout == Layout::linear && !is_usual(plan)) {
    return unsupported("takes linear tensors with windows of 3 x 3 or 5 x 5, steps of 1 or 2 and no dilation");
  }
  if (plan.window() > most_window) return unsupported("takes windows of up to 96 elements");
  constexpr std::int64_t most = std::numeric_limits<int>::max() / 2;
  const std::int64_t reach_height = (height.kernel - 1) * height.dilation + height.in + height.pad;
  const std::int64_t reach_width = (width.kernel - 1) * width.dilation + width.in + width.pad;
  if (plan.out_pixels() > most / 8 || reach_height > most || reach_width > most || plan.channels > most ||
      height.out * height.stride > most || width.out * width.stride > most) {
    return unsupported("takes images of up to 2^27 pixels");
  }
  return {};
}

Status depthwise_run(const Convolution& op, const Problem& problem, const Buffers& buffers,
                     const CudaContext& context) {
  const TensorDesc& to = problem.outputs[0];
  if (to.extents.element_count() == 0) return {};
  const ConvolutionPlan plan = plan_convolution(op, problem);
  const auto& [depth, height, width] = plan.axis;
  const auto as_int = [](std::int64_t value) { return static_cast<int>(value); };
  const std::int64_t vector = channels_per_vector(to.layout);
  const std::int64_t stored = ceil_divide(plan.channels, vector) * vector;
  DepthwiseTask task{.x = buffers.inputs[Convolution::x],
                     .weight = buffers.inputs[Convolution::weight],
                     .bias = static_cast<const float*>(buffers.inputs[Convolution::bias]),
                     .scale = static_cast<const float*>(buffers.inputs[Convolution::scale]),
                     .y = buffers.outputs[0],
                     .epilogue = ConvolutionEpilogue::of(op, to.dtype),
                     .images_of_batch = as_int(to.layout == Layout::hwc8 ? 1 : stored / vector),
                     .channels = as_int(to.layout == Layout::hwc8 ? stored : vector),
                     .all_channels = as_int(plan.channels),
                     .weight_pitch = as_int(vector),
                     .height = as_int(height.in),
                     .width = as_int(width.in),
                     .out_height = as_int(height.out),
                     .out_width = as_int(width.out),
                     .kernel_height = as_int(height.kernel),
                     .kernel_width = as_int(width.kernel),
                     .row_stride = as_int(height.stride),
                     .column_stride = as_int(width.stride),
                     .row_pad = as_int(height.pad),
                     .column_pad = as_int(width.pad),
                     .row_dilation = as_int(height.dilation),
                     .column_dilation = as_int(width.dilation),
                     .lanes = 1,
                     .lane_tiles = 1,
                     .strips = 1,
                     .by_strips = {},
                     .count = 0};
  task.count = to.layout == Layout::linear ? plan.batch * plan.channels : plan.batch;
  const auto by_window = [&](auto run) {
    const bool two = width.stride == 2;
    if (width.kernel == 3) return two ? run.template operator()<3, 2>() : run.template operator()<3, 1>();
    return two ? run.template operator()<5, 2>() : run.template operator()<5, 1>();
  };
  return dispatch_device(to.dtype, [&](auto element) -> Status {
    using T = decltype(element);
    if (to.layout == Layout::linear) {
      return by_window([&]<int Kernel, int Stride>() { return launch_planes<T, Kernel, Stride>(task, context); });
    }
    if (!is_aligned(task.x, 16) || !is_aligned(task.y, 16)) {
      return invalid_argument("Convolution: tensors in hwc8 and chw32 must lie at multiples of 16 bytes");
    }
    if constexpr (std::is_same_v<T, float>) {
      return unsupported("f32 has no vector layout");
    } else {
      if (!is_usual(plan) || width.kernel != 3) return launch_vectors<T, 0, 0>(task, context);
      return width.stride == 2 ? launch_vectors<T, 3, 2>(task, context) : launch_vectors<T, 3, 1>(task, context);
    }
  });
}

}  // namespace graft

// CUDA kernels of every elementwise operator: y[i] = op.apply(x[i]), in f32 arithmetic.
#pragma once

#include <algorithm>
#include <span>

#include "graft/operator/define_operator.hpp"
#include "kernels/float8.cuh"
#include "kernels/launch.cuh"
#include "kernels/vector.cuh"

namespace graft {
namespace kernels {

/// The sizes of blocks and the work per thread, tuned on an H200.
struct ElementwisePolicy {
  static constexpr int threads = 256;
  /// The number of vectors per thread if the tensor fills the GPU at least `many_times` and at most `most_times`.
  static constexpr int vectors_of_many = 2;
  static constexpr int many_times = 3;
  /// The largest tensor, as a multiple of the elements that fill the GPU, for which a thread computes `vectors_of_many`
  /// vectors. On an H200, larger tensors take 3 % less time with one vector per thread.
  static constexpr int most_times = 24;
  static constexpr int table_threads = 256;
  static constexpr int table_vectors_in_flight = 4;
  static constexpr int table_blocks_per_multiprocessor = 4;
};

/// The positions of the padding in a channel-vector layout; a linear layout has no padding.
struct ChannelPadding {
  /// The number of consecutive elements that belong to one range of `vector` channels; 0 if there is no padding.
  std::int64_t block = 0;
  std::int64_t blocks = 1;  ///< The number of ranges of channels.
  int vector = 1;
  int channels = 0;

  [[nodiscard]] static ChannelPadding of(const TensorDesc& desc) {
    const std::int64_t vector = channels_per_vector(desc.layout);
    if (vector == 1 || desc.extents[1] % vector == 0) return {};
    const std::int64_t pixels = desc.layout == Layout::chw32 ? desc.extents[2] * desc.extents[3] : 1;
    return {.block = pixels * vector,
            .blocks = ceil_divide(desc.extents[1], vector),
            .vector = static_cast<int>(vector),
            .channels = static_cast<int>(desc.extents[1])};
  }
  /// Returns how many elements from this one to the end of its vector are not padding; at most 0 if this element is
  /// padding.
  [[nodiscard]] __device__ int valid_from(std::int64_t element) const {
    const auto range = static_cast<int>(element / block % blocks);
    return channels - range * vector - static_cast<int>(element % vector);
  }
};

template <class T, class Op>
__device__ T apply_to(const Op& op, T x) {
  if constexpr (std::is_same_v<T, std::int8_t>) {
    return quantize_device(op.apply(static_cast<float>(x) * op.x_scale), op.y_scale);
  } else if constexpr (std::is_same_v<T, __nv_fp8_e4m3>) {
    return T(op.apply(static_cast<float>(x) * op.x_scale) / op.y_scale);
  } else {
    return static_cast<T>(op.apply(static_cast<float>(x)));
  }
}

template <class T, class Op>
__global__ void __launch_bounds__(ElementwisePolicy::threads)
    elementwise_scalar(Op op, const T* x, T* y, std::int64_t count, ChannelPadding padding) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const bool is_padding = padding.block > 0 && padding.valid_from(i) <= 0;
  y[i] = is_padding ? T(0.F) : apply_to(op, x[i]);
}

/// Applies `op` to U vectors per thread. The last block also computes the remaining elements, which do not fill a
/// vector.
template <class T, int U, class Op>
__global__ void __launch_bounds__(ElementwisePolicy::threads)
    elementwise_vector(Op op, const T* x, T* y, std::int64_t count) {
  constexpr int width = widest<T>;
  constexpr int threads = ElementwisePolicy::threads;
  using V = Vector<T, width>;
  const std::int64_t vectors = count / width;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * (U * threads) + threadIdx.x;
  // The remaining element is loaded before the vectors are stored, so that small tensors wait for memory only once.
  const std::int64_t rest = vectors * width + threadIdx.x;
  const bool has_rest = blockIdx.x == gridDim.x - 1 && rest < count;
  const T last = has_rest ? x[rest] : T(0.F);
  V loaded[U];
#pragma unroll
  for (int u = 0; u < U; ++u) {
    if (first + u * threads < vectors) loaded[u] = V::load(x + (first + u * threads) * width);
  }
#pragma unroll
  for (int u = 0; u < U; ++u) {
    if (first + u * threads >= vectors) continue;
    float values[width];
    loaded[u].unpack(values);
#pragma unroll
    for (float& value : values) value = op.apply(value);
    V::pack(values).store(y + (first + u * threads) * width);
  }
  if (has_rest) y[rest] = apply_to(op, last);
}

/// Applies `op` to elements of one byte, which have 256 values, by looking up a table of 256 results. Each lane of a
/// warp has its own copy of the table in its own bank of shared memory, so that no two lanes conflict.
template <class T, class Op>
__global__ void __launch_bounds__(ElementwisePolicy::table_threads, ElementwisePolicy::table_blocks_per_multiprocessor)
    elementwise_table(Op op, const T* x, T* y, std::int64_t count) {
  constexpr int width = widest<T>;
  constexpr int threads = ElementwisePolicy::table_threads;
  constexpr int U = ElementwisePolicy::table_vectors_in_flight;
  constexpr unsigned lanes = 32;
  static_assert(sizeof(T) == 1 && threads == 256, "one thread makes one entry");
  __shared__ unsigned table[256 * lanes];
  const unsigned lane = threadIdx.x % lanes;
  const auto argument = static_cast<std::uint8_t>(threadIdx.x);
  const T entry = apply_to(op, reinterpret_cast<const T&>(argument));
  const auto result = reinterpret_cast<const std::uint8_t&>(entry);
  for (unsigned i = 0; i < lanes; ++i) table[threadIdx.x * lanes + (i + lane) % lanes] = result;
  __syncthreads();

  const auto* column = reinterpret_cast<const char*>(table + lane);
  const auto look_up = [&](unsigned word) {
    constexpr unsigned mask = 0xFFU * lanes * sizeof(unsigned);  // The offset of an entry is its index times 128.
    const auto at = [&](unsigned offset) { return *reinterpret_cast<const unsigned*>(column + (offset & mask)); };
    const unsigned low = __byte_perm(at(word << 7U), at(word >> 1U), 0x0040U);
    const unsigned high = __byte_perm(at(word >> 9U), at(word >> 17U), 0x0040U);
    return __byte_perm(low, high, 0x5410U);
  };
  const std::int64_t vectors = count / width;
  const auto step = static_cast<std::int64_t>(gridDim.x) * threads;
  std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  const auto* from = reinterpret_cast<const uint4*>(x);
  auto* to = reinterpret_cast<uint4*>(y);
  for (; i < vectors; i += U * step) {
    uint4 loaded[U];
#pragma unroll
    for (int u = 0; u < U; ++u) {
      if (i + u * step < vectors) loaded[u] = from[i + u * step];
    }
#pragma unroll
    for (int u = 0; u < U; ++u) {
      const uint4 v = loaded[u];
      if (i + u * step < vectors) to[i + u * step] = make_uint4(look_up(v.x), look_up(v.y), look_up(v.z), look_up(v.w));
    }
  }
  const std::int64_t rest = vectors * width + threadIdx.x;
  if (blockIdx.x == 0 && rest < count) y[rest] = apply_to(op, x[rest]);
}

template <class Op>
struct ElementwiseKernels {
  static_assert(std::is_trivially_copyable_v<Op>, "the definition is passed to the GPU as a kernel argument");

  static Status fits(const Op& /*op*/, const Problem& /*problem*/) { return {}; }

  static Status run_scalar(const Op& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
    return dispatch_device_and_f8(problem.inputs[0].dtype, [&](auto element) {
      using T = decltype(element);
      constexpr int threads = ElementwisePolicy::threads;
      const std::int64_t count = problem.inputs[0].storage_count();
      return launch(Op::name, elementwise_scalar<T, Op>, {ceil_divide(count, threads), threads}, context, op,
                    static_cast<const T*>(buffers.inputs[0]), static_cast<T*>(buffers.outputs[0]), count,
                    ChannelPadding::of(problem.inputs[0]));
    });
  }

  static Status run_vector(const Op& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
    constexpr std::size_t vector_bytes = 16;
    const bool aligned = is_aligned(buffers.inputs[0], vector_bytes) && is_aligned(buffers.outputs[0], vector_bytes);
    if (!aligned || ChannelPadding::of(problem.inputs[0]).block > 0) {
      return run_scalar(op, problem, buffers, context);
    }
    return dispatch_device_and_f8(problem.inputs[0].dtype, [&](auto element) -> Status {
      using T = decltype(element);
      const std::int64_t count = problem.inputs[0].storage_count();
      const auto* x = static_cast<const T*>(buffers.inputs[0]);
      auto* y = static_cast<T*>(buffers.outputs[0]);
      // A tensor smaller than one vector still needs a block, for its remaining elements.
      const std::int64_t vectors = count == 0 ? 0 : std::max<std::int64_t>(count / widest<T>, 1);
      DeviceTraits device;
      if (Status status = current_device(device); !status.ok()) return status;
      if constexpr (sizeof(T) == 1) {
        constexpr int threads = ElementwisePolicy::table_threads;
        const std::int64_t most = device.multiprocessors * ElementwisePolicy::table_blocks_per_multiprocessor;
        return launch(Op::name, elementwise_table<T, Op>, {std::min(ceil_divide(vectors, threads), most), threads},
                      context, op, x, y, count);
      } else {
        using Policy = ElementwisePolicy;
        const std::int64_t held = std::int64_t{device.multiprocessors} * device.threads_per_multiprocessor;
        const auto run = [&](auto* kernel, int vectors_of_thread) {
          const std::int64_t of_block = std::int64_t{Policy::threads} * vectors_of_thread;
          return launch(Op::name, kernel, {ceil_divide(vectors, of_block), Policy::threads}, context, op, x, y, count);
        };
        constexpr int many = Policy::vectors_of_many;
        if (vectors >= held * Policy::many_times && vectors <= held * Policy::most_times)
          return run(elementwise_vector<T, many, Op>, many);
        return run(elementwise_vector<T, 1, Op>, 1);
      }
    });
  }
};

}  // namespace kernels

/// Returns the CUDA variants of a definition that derives from Elementwise. Both variants support every problem.
/// "vector16" moves 128 bits at a time, and computes i8 and f8e4m3fn with a table of all results. For padded channels,
/// and for addresses that are not multiples of 16, it runs the kernel of "scalar".
template <class Op>
[[nodiscard]] std::span<const Variant<Op>> elementwise_kernels() {
  using Kernels = kernels::ElementwiseKernels<Op>;
  static constexpr std::array variants{Variant<Op>{"vector16", Kernels::fits, Kernels::run_vector},
                                       Variant<Op>{"scalar", Kernels::fits, Kernels::run_scalar}};
  return variants;
}

}  // namespace graft

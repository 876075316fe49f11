// Convolution of images with few channels on tensor cores, as in the first layers of networks. A block computes tiles
// of 16 x 16 pixels of y and copies the pixels that the windows of a tile read to shared memory once.
#include "kernels/mma.cuh"
#include "ops/convolution/patches.cuh"
#include "ops/convolution/repack.hpp"

namespace graft::ops {
namespace {

constexpr int group_columns = 32;  // channels of y; a thread computes 8 adjacent ones

/// The number of bytes of a pixel that are stored in shared memory. Further bytes of the pixel in global memory are
/// padding. f32 is multiplied in TF32.
template <class T>
inline constexpr int pixel_bytes = std::is_same_v<T, std::int8_t> ? 4 : 16;

struct FewChannelsTask : PatchTask {
  int channel_bytes;
  int pixel_stride;  ///< The number of bytes from one pixel to the next, and from one tap of a filter to the next.
  int outputs;
  int stored_outputs;  ///< The number of channels of y, including padding.
  int column_tiles;    ///< The number of tiles of channels of y.
  bool linear;         ///< Whether y has the linear layout.

  /// Returns the distance in bytes between filters in shared memory, which places eight adjacent filters in different
  /// banks.
  [[nodiscard]] GRAFT_HOST_DEVICE int pitch() const { return steps * step_bytes + 16; }
};

/// The layout of shared memory: filters, biases and factors of their channels, zeros, offsets of the taps, two patches.
template <class T, int Groups>
struct FewChannelsMemory {
  static constexpr int columns = Groups * group_columns;
  static constexpr int taps_of_step = step_bytes / pixel_bytes<T>;
  int biases, factors, zeros, offsets, patches, patch_bytes, bytes;

  GRAFT_HOST_DEVICE explicit FewChannelsMemory(const FewChannelsTask& task)
      : biases(columns * task.pitch()),
        factors(biases + columns * 4),
        zeros(factors + columns * 4),
        offsets(zeros + 16),
        patches(offsets + (task.steps * taps_of_step * 4 + 15) / 16 * 16),
        patch_bytes((task.patch_pixels * pixel_bytes<T> + 15) / 16 * 16),
        bytes(patches + 2 * patch_bytes) {}
};

template <class T, int Groups>
__global__ void __launch_bounds__(patch_threads, 2) few_channels(const FewChannelsTask task) {
  constexpr bool bytes = std::is_same_v<T, std::int8_t>;
  constexpr int columns = Groups * group_columns;
  constexpr int tiles = Groups * 4;  // of 8 channels
  using Memory = FewChannelsMemory<T, Groups>;
  using Sum = SumOf<T>;
  extern __shared__ uint4 shared[];
  auto* const memory = reinterpret_cast<char*>(shared);
  const Memory at(task);
  auto* const biases = reinterpret_cast<float*>(memory + at.biases);
  auto* const factors = reinterpret_cast<float*>(memory + at.factors);
  auto* const offsets = reinterpret_cast<int*>(memory + at.offsets);
  const int pitch = task.pitch();
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  const int warp = thread / 32;
  const int first_tile = static_cast<int>(blockIdx.x) / task.column_tiles;
  const int first_column = (static_cast<int>(blockIdx.x) - first_tile * task.column_tiles) * columns;
  const int tile_step = static_cast<int>(gridDim.x) / task.column_tiles;

  const auto copy_patch = [&](int tile, int stage) {
    if (tile < task.tiles) {
      const PatchTask::Place place = task.place_of(tile);
      const char* const image =
          task.x + std::int64_t{place.image} * (std::int64_t{task.height} * task.width * task.pixel_stride);
      const int first_row = place.row * task.row_stride - task.row_pad;
      const int first = place.column * task.column_stride - task.column_pad;
      const unsigned to = shared_address(memory + at.patches + stage * at.patch_bytes);
      for (int i = thread; i < task.patch_pixels; i += patch_threads) {
        const int patch_row = task.by_patch_width.quotient(i);
        const int row = first_row + patch_row;
        const int column = first + i - patch_row * task.patch_width;
        const bool inside = row >= 0 && row < task.height && column >= 0 && column < task.width;
        const char* const from =
            image + (inside ? (std::int64_t{row} * task.width + column) * task.pixel_stride : std::int64_t{0});
        if constexpr (bytes) {
          copy_word_async(to + static_cast<unsigned>(i * 4), from, inside);
        } else {
          copy_async(to + static_cast<unsigned>(i * 16), from, inside ? task.channel_bytes : 0);
        }
      }
    }
    commit_copies();
  };

  // Filters are ordered so that the sums of a thread from four tiles of 8 columns belong to 8 adjacent channels.
  const int padded_taps = task.steps * Memory::taps_of_step;
  for (int i = thread; i < columns * padded_taps; i += patch_threads) {
    const int column = i / padded_taps;
    const int tap = i - column * padded_taps;
    const int in_group = column % group_columns;
    const int row = column - in_group + in_group % 8 / 2 * 8 + in_group / 8 * 2 + in_group % 2;
    const bool exists = first_column + column < task.outputs && tap < task.taps;
    const char* const from =
        task.weight +
        (exists ? (std::int64_t{first_column + column} * task.taps + tap) * task.pixel_stride : std::int64_t{0});
    char* const to = memory + row * pitch + tap * pixel_bytes<T>;
    if constexpr (bytes) {
      const unsigned mask = task.channel_bytes == 4 ? ~0U : (1U << static_cast<unsigned>(task.channel_bytes * 8)) - 1U;
      *reinterpret_cast<unsigned*>(to) = exists ? *reinterpret_cast<const unsigned*>(from) & mask : 0U;
    } else {
      copy_async(shared_address(to), from, exists ? task.channel_bytes : 0);
    }
  }
  copy_patch(first_tile, 0);
  for (int i = thread; i < columns; i += patch_threads) {
    const int k = first_column + i;
    const bool exists = k < task.outputs;
    biases[i] = exists ? task.bias[k] : 0.F;
    factors[i] = exists ? task.epilogue.factor(task.scale[k]) : 0.F;
  }
  for (int i = thread; i < padded_taps; i += patch_threads) {
    offsets[i] = i < task.taps ? task.pixel_of_tap(i) * pixel_bytes<T> : bytes ? 0 : -1;
  }
  if (thread < 4) reinterpret_cast<unsigned*>(memory + at.zeros)[thread] = 0;

  const unsigned zeros = shared_address(memory + at.zeros);
  const unsigned right =
      shared_address(memory) + static_cast<unsigned>((lane % 8 + lane / 16 * 8) * pitch + lane / 8 % 2 * 16);
  const int row_bytes = task.row_stride * task.patch_width * pixel_bytes<T>;
  const int own_column = (bytes ? lane / 4 : lane % 16) * task.column_stride * pixel_bytes<T>;
  int stage = 0;
  for (int tile = first_tile; tile < task.tiles; tile += tile_step) {
    copy_patch(tile + tile_step, stage ^ 1);
    wait_for_copies<1>();
    __syncthreads();
    const char* const patch = memory + at.patches + stage * at.patch_bytes + warp * warp_rows * row_bytes + own_column;
    const unsigned patch_at = shared_address(patch);
    Sum sums[warp_rows][tiles][4] = {};
#pragma unroll 2
    for (int step = 0; step < task.steps; ++step) {
      unsigned left[warp_rows][4];
      if constexpr (bytes) {
        const int low = offsets[step * 8 + lane % 4];
        const int high = offsets[step * 8 + lane % 4 + 4];
        const int eight = 8 * 4 * task.column_stride;
#pragma unroll
        for (int i = 0; i < warp_rows; ++i) {
          const auto word = [&](int offset) {
            return *reinterpret_cast<const unsigned*>(patch + i * row_bytes + offset);
          };
          left[i][0] = word(low);
          left[i][1] = word(low + eight);
          left[i][2] = word(high);
          left[i][3] = word(high + eight);
        }
      } else {
        const int offset = offsets[step * 2 + lane / 16];
#pragma unroll
        for (int i = 0; i < warp_rows; ++i) {
          load_matrices(left[i], offset < 0 ? zeros : patch_at + static_cast<unsigned>(i * row_bytes + offset));
        }
      }
#pragma unroll
      for (int j = 0; j < tiles; j += 2) {
        unsigned pair[4];
        load_matrices(pair, right + static_cast<unsigned>(j * 8 * pitch + step * step_bytes));
#pragma unroll
        for (int i = 0; i < warp_rows; ++i) {
          multiply_step<T>(sums[i][j], left[i], pair[0], pair[1]);
          multiply_step<T>(sums[i][j + 1], left[i], pair[2], pair[3]);
        }
      }
    }
    __syncthreads();
    stage ^= 1;

    const PatchTask::Place place = task.place_of(tile);
#pragma unroll
    for (int g = 0; g < Groups; ++g) {
      const int in_block = g * group_columns + lane % 4 * 8;
      const int k = first_column + in_block;
      if (k >= (task.linear ? task.outputs : task.stored_outputs)) break;
      float bias[8];
      float factor[8];
#pragma unroll
      for (int c = 0; c < 8; c += 4) {
        *reinterpret_cast<float4*>(bias + c) = *reinterpret_cast<const float4*>(biases + in_block + c);
        *reinterpret_cast<float4*>(factor + c) = *reinterpret_cast<const float4*>(factors + in_block + c);
      }
#pragma unroll
      for (int i = 0; i < 2 * warp_rows; ++i) {
        const int half = i % 2;
        const int row = place.row + warp * warp_rows + i / 2;
        const int column = place.column + lane / 4 + half * 8;
        if (row >= task.out_height || column >= task.out_width) continue;
        float values[8];
#pragma unroll
        for (int c = 0; c < 8; ++c) {
          const Sum sum = sums[i / 2][g * 4 + c / 2][2 * half + c % 2];
          values[c] = fmaf(static_cast<float>(sum), bytes ? factor[c] : 1.F, bias[c]);
        }
        task.epilogue.activate_all(values);
        const std::int64_t pixel = std::int64_t{row} * task.out_width + column;
        const std::int64_t image_pixels = std::int64_t{task.out_height} * task.out_width;
        if constexpr (!bytes) {
          if (task.linear) {
            auto* const to =
                static_cast<T*>(task.y) + (std::int64_t{place.image} * task.outputs + k) * image_pixels + pixel;
#pragma unroll
            for (int c = 0; c < 8; ++c) {
              if (k + c < task.outputs) to[c * image_pixels] = static_cast<T>(values[c]);
            }
            continue;
          }
        }
        if constexpr (bytes) {
          const std::int64_t plane = std::int64_t{place.image} * (task.stored_outputs / 32) + k / 32;
          auto* const to = static_cast<std::int8_t*>(task.y) + (plane * image_pixels + pixel) * 32 + k % 32;
          *reinterpret_cast<uint2*>(to) = make_uint2(task.quantizer.four(values), task.quantizer.four(values + 4));
        } else if constexpr (std::is_same_v<T, float>) {
          auto* const to =
              static_cast<T*>(task.y) + (place.image * image_pixels + pixel) * std::int64_t{task.stored_outputs} + k;
          *reinterpret_cast<float4*>(to) = make_float4(values[0], values[1], values[2], values[3]);
          *reinterpret_cast<float4*>(to + 4) = make_float4(values[4], values[5], values[6], values[7]);
        } else {
          auto vector = Vector<T, 8>::pack(values);
          if (k + 8 > task.outputs) vector = vector.first(::max(task.outputs - k, 0));
          vector.store(static_cast<T*>(task.y) + (place.image * image_pixels + pixel) * task.stored_outputs + k);
        }
      }
    }
  }
  wait_for_copies<0>();
}

/// Returns the sizes that do not depend on the element type of a kernel. Pixels of linear tensors are copied to chunks
/// of 16 bytes first.
FewChannelsTask make_few_channels(const Convolution& op, const ConvolutionPlan& plan, const TensorDesc& to) {
  const std::int64_t vector = channels_per_vector(to.layout);
  const std::int64_t taps_of_step = to.dtype == DType::i8 ? 8 : 2;
  FewChannelsTask task{};
  static_cast<PatchTask&>(task) = make_patches(op, plan, to, ceil_divide(plan.window(), taps_of_step));
  const auto element = static_cast<std::int64_t>(size_of(to.dtype));
  task.channel_bytes = static_cast<int>(plan.channels * element);
  task.pixel_stride = static_cast<int>(to.layout == Layout::linear ? 16 : vector * element);
  task.outputs = static_cast<int>(plan.outputs);
  task.stored_outputs = static_cast<int>(ceil_divide(plan.outputs, vector) * vector);
  task.linear = to.layout == Layout::linear;
  return task;
}

/// Returns the number of groups of columns per block. Two groups halve the loads of each pixel and are chosen if their
/// filters fit into shared memory.
template <class T>
int groups_of(const FewChannelsTask& task) {
  return task.outputs > group_columns && check_patch_memory(FewChannelsMemory<T, 2>(task).bytes).ok() ? 2 : 1;
}

template <class T, int Groups>
Status launch_few_channels(FewChannelsTask task, const DeviceTraits& device, const CudaContext& context) {
  const FewChannelsMemory<T, Groups> memory(task);
  task.column_tiles = static_cast<int>(ceil_divide(task.outputs, Groups * group_columns));
  const Grid grid = patch_grid(task, device, memory.bytes, task.column_tiles);
  return launch("Convolution few_channels", few_channels<T, Groups>, grid, context, task);
}

Status launch_few_channels(const FewChannelsTask& task, DType dtype, const DeviceTraits& device,
                           const CudaContext& context) {
  return dispatch_device(dtype, [&](auto element) -> Status {
    using T = decltype(element);
    return groups_of<T>(task) == 1 ? launch_few_channels<T, 1>(task, device, context)
                                   : launch_few_channels<T, 2>(task, device, context);
  });
}

Status sizes_fit(const Convolution& op, const Problem& problem, std::int64_t most_channels) {
  const ConvolutionPlan plan = plan_convolution(op, problem);
  const auto& [depth, height, width] = plan.axis;
  if (depth.in != 1 || depth.kernel != 1 || depth.out != 1) return unsupported("supports 1 or 2 spatial axes");
  if (plan.group != 1 || plan.channels > most_channels || plan.channels < 1) {
    return unsupported("supports one group of up to " + std::to_string(most_channels) + " channels");
  }
  constexpr std::int64_t most_window = 1024;
  constexpr int step_bits = 6;
  if (Status status = check_patches(plan, most_window, step_bits); !status.ok()) return status;
  if (plan.outputs > most_patch_pixels) return unsupported("supports up to 2^29 pixels");
  const FewChannelsTask task = make_few_channels(op, plan, problem.outputs[0]);
  return dispatch_device(problem.outputs[0].dtype, [&](auto element) -> Status {
    return check_patch_memory(FewChannelsMemory<decltype(element), 1>(task).bytes);
  });
}

}  // namespace

Status few_channels_fits(const Convolution& op, const Problem& problem) {
  const TensorDesc& x = problem.inputs[Convolution::x];
  if (x.layout == Layout::linear) return unsupported("supports hwc8 and chw32, found linear");
  return sizes_fit(op, problem, x.dtype == DType::i8 || x.dtype == DType::f32 ? 4 : 8);
}

Status few_channels_run(const Convolution& op, const Problem& problem, const Buffers& buffers,
                        const CudaContext& context) {
  const TensorDesc& to = problem.outputs[0];
  if (to.extents.element_count() == 0) return {};
  DeviceTraits device;
  if (Status status = current_device(device); !status.ok()) return status;
  if (device.compute_major < ampere) return direct_run(op, problem, buffers, context);
  FewChannelsTask task = make_few_channels(op, plan_convolution(op, problem), to);
  if (Status status = set_tensors(task, buffers); !status.ok()) return status;
  return launch_few_channels(task, to.dtype, device, context);
}

Status few_channels_linear_fits(const Convolution& op, const Problem& problem) {
  const TensorDesc& x = problem.inputs[Convolution::x];
  if (x.layout != Layout::linear || x.dtype == DType::i8)
    return unsupported("supports f32, f16 and bf16 in the linear layout");
  if (x.dtype == DType::f32 && !op.allow_tf32) return unsupported("supports f32 only with allow_tf32 = 1");
  return sizes_fit(op, problem, x.dtype == DType::f32 ? 4 : 8);
}

Status few_channels_linear_run(const Convolution& op, const Problem& problem, const Buffers& buffers,
                               const CudaContext& context) {
  const TensorDesc& to = problem.outputs[0];
  if (to.extents.element_count() == 0) return {};
  DeviceTraits device;
  if (Status status = current_device(device); !status.ok()) return status;
  if (device.compute_major < ampere) return run_before_ampere(op, problem, buffers, context);
  const ConvolutionPlan plan = plan_convolution(op, problem);
  const Repacked repacked = Repacked::of(plan, problem, buffers);
  if (Status status = repacked.run(context); !status.ok()) return status;
  FewChannelsTask task = make_few_channels(op, plan, to);
  set_tensors(task, buffers, repacked);
  return launch_few_channels(task, to.dtype, device, context);
}

}  // namespace graft::ops

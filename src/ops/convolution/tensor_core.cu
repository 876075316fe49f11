// Host code of the tensor-core variant of Convolution: the supported problems, the choice of the tile, and the copies
// of linear tensors in chunks.
#include <algorithm>
#include <limits>

#include "kernels/vector.cuh"
#include "ops/convolution/tensor_core.hpp"
#include "ops/convolution/variants.hpp"

namespace graft::ops {
namespace {

constexpr std::int64_t chunk_bytes = 16;
// The largest number of chunks of a sum, whose table must fit into the shared memory of every GPU.
constexpr std::int64_t most_chunks = 3072;
constexpr std::int64_t most_window = 16;  // the maximum number of elements on each axis; each has one bit of a mask

/// Returns the unit of the channels of a group. Each group is padded to a multiple of this number, or must have a
/// multiple of it, so that no chunk contains channels of two groups.
std::int64_t channels_per_unit(DType dtype, Layout layout) {
  if (layout != Layout::linear) return channels_per_vector(layout);
  return chunk_bytes / static_cast<std::int64_t>(size_of(dtype));
}

std::int64_t padded(std::int64_t channels, std::int64_t unit) { return ceil_divide(channels, unit) * unit; }

constexpr int repack_side = 32;
constexpr int repack_rows = 8;

/// Copies images x channels x pixels to images x pixels x channels. `groups` images form one image of the result, and
/// the channels of each are padded with zeros to `to_channels`.
template <class T>
__global__ void __launch_bounds__(repack_side* repack_rows)
    repack(const T* from, T* to, int channels, int pixels, int to_channels, int groups, int pixel_tiles,
           int channel_tiles) {
  __shared__ T tile[repack_side][repack_side + 4 / sizeof(T)];
  const int lane = static_cast<int>(threadIdx.x) % repack_side;
  const int row = static_cast<int>(threadIdx.x) / repack_side;
  const auto image = static_cast<int>(blockIdx.x) / (pixel_tiles * channel_tiles);
  const int rest = static_cast<int>(blockIdx.x) - image * pixel_tiles * channel_tiles;
  const int first_channel = rest / pixel_tiles * repack_side;
  const int first_pixel = rest % pixel_tiles * repack_side;
  const T* source = from + static_cast<std::int64_t>(image) * channels * pixels;
  for (int i = row; i < repack_side; i += repack_rows) {
    const int channel = first_channel + i;
    const int pixel = first_pixel + lane;
    const bool exists = channel < channels && pixel < pixels;
    tile[i][lane] = exists ? source[static_cast<std::int64_t>(channel) * pixels + pixel] : T(0.F);
  }
  __syncthreads();
  T* target =
      to + static_cast<std::int64_t>(image / groups) * pixels * groups * to_channels + image % groups * to_channels;
  for (int i = row; i < repack_side; i += repack_rows) {
    const int channel = first_channel + lane;
    const int pixel = first_pixel + i;
    if (channel < to_channels && pixel < pixels) {
      target[static_cast<std::int64_t>(pixel) * groups * to_channels + channel] = tile[lane][i];
    }
  }
}

/// Launches repack(), which copies i8 as bytes and the 16-bit types as pairs of bytes.
Status run_repack(DType dtype, const void* from, void* to, std::int64_t images, std::int64_t channels,
                  std::int64_t pixels, std::int64_t to_channels, std::int64_t groups, const CudaContext& context) {
  const std::int64_t pixel_tiles = ceil_divide(pixels, repack_side);
  const std::int64_t channel_tiles = ceil_divide(to_channels, repack_side);
  const Grid grid{images * pixel_tiles * channel_tiles, repack_side * repack_rows};
  const auto run = [&](auto element) {
    using T = decltype(element);
    return launch("Convolution repack", repack<T>, grid, context, static_cast<const T*>(from), static_cast<T*>(to),
                  static_cast<int>(channels), static_cast<int>(pixels), static_cast<int>(to_channels),
                  static_cast<int>(groups), static_cast<int>(pixel_tiles), static_cast<int>(channel_tiles));
  };
  return dtype == DType::i8 ? run(std::int8_t{}) : run(__half{});
}

TensorCoreTask make_task(const Convolution& op, const ConvolutionPlan& plan, const TensorDesc& to) {
  const auto element = static_cast<std::int64_t>(size_of(to.dtype));
  const std::int64_t unit = channels_per_unit(to.dtype, to.layout);
  const std::int64_t group_channels = padded(plan.group_channels(), unit);
  const bool blocked = to.layout == Layout::chw32;
  const std::int64_t pixel = blocked ? unit : group_channels * plan.group;
  const std::int64_t pixel_chunks = group_channels * element / chunk_bytes;
  constexpr std::int64_t most_block_chunks = 8;
  const std::int64_t block_chunks = blocked ? unit * element / chunk_bytes : std::min(most_block_chunks, pixel_chunks);
  const auto& [depth, height, width] = plan.axis;
  const auto as_int = [](std::int64_t value) { return static_cast<int>(value); };
  TensorCoreTask task;
  task.epilogue = ConvolutionEpilogue::of(op, to.dtype);
  task.quantizer = Quantizer(op.y_scale);
  task.image_bytes = group_channels * plan.group * plan.in_pixels() * element;
  task.group_bytes = (blocked ? group_channels * plan.in_pixels() : group_channels) * element;
  task.block_bytes = as_int(blocked ? unit * plan.in_pixels() * element : block_chunks * chunk_bytes);
  task.pixel_bytes = as_int(pixel * element);
  task.blocks = as_int(pixel_chunks / block_chunks);
  task.block_chunks = as_int(block_chunks);
  task.rest_chunks = as_int(std::max<std::int64_t>(pixel_chunks % block_chunks, 1));
  task.chunks = as_int(pixel_chunks * plan.window());
  task.filter_block_chunks = as_int(blocked ? block_chunks * plan.window() : block_chunks);
  task.filter_tap_chunks = as_int(blocked ? block_chunks : pixel_chunks);
  task.by_block = Divisor(as_int(block_chunks * plan.window()));
  task.by_block_chunks = Divisor(task.block_chunks);
  task.by_rest_chunks = Divisor(task.rest_chunks);
  task.by_kernel_width = Divisor(as_int(width.kernel));
  task.group_channels = as_int(plan.group_channels());
  task.height = as_int(height.in);
  task.width = as_int(width.in);
  task.kernel_height = as_int(height.kernel);
  task.kernel_width = as_int(width.kernel);
  task.row_stride = as_int(height.stride);
  task.column_stride = as_int(width.stride);
  task.row_pad = as_int(height.pad);
  task.column_pad = as_int(width.pad);
  task.row_dilation = as_int(height.dilation);
  task.column_dilation = as_int(width.dilation);
  task.pixels = as_int(plan.batch * plan.out_pixels());
  task.image_pixels = as_int(plan.out_pixels());
  task.by_image = Divisor(task.image_pixels);
  task.by_row = Divisor(as_int(width.out));
  task.groups = as_int(plan.group);
  task.group_outputs = as_int(plan.group_outputs());
  task.all_outputs = as_int(plan.outputs);
  task.stored_outputs = as_int(padded(plan.outputs, channels_per_vector(to.layout)));
  task.layout = to.layout;
  return task;
}

/// Returns the tile and the number of splits with the shortest estimated time in clock cycles.
TensorCoreChoice choose(const TensorCoreTask& task, const DeviceTraits& device) {
  // Fitted to the times of the layers of ResNet-50 and VGG-16 on an H200: the minimum time of a step, the start and end
  // of a block, the time of each element of its tile (1500 for 4096 elements), and the addition of the parts of a
  // cluster.
  constexpr double step_cycles = 600;
  constexpr double block_cycles = 3000;
  constexpr double element_cycles = 1500. / 4096;
  constexpr double cluster_cycles = 3000;
  TensorCoreChoice best{.tile = tensor_core_least_tile, .splits = 1};
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t tile = 0; tile < tensor_core_tiles.size(); ++tile) {
    const TensorCoreTileSize& size = tensor_core_tiles[tile];
    const std::int64_t tiles =
        ceil_divide(task.pixels, size.rows) * ceil_divide(task.group_outputs, size.columns) * std::int64_t{task.groups};
    const std::int64_t steps = ceil_divide(task.chunks, size.chunks);
    for (int splits = 1; splits <= 8; splits *= 2) {
      const auto own_steps = static_cast<int>(ceil_divide(steps, splits));
      if (splits > 1 && (!device.has_clusters() || own_steps < 2)) break;
      if (task.layout == Layout::linear && size.rows / splits < tensor_core_linear_pixels) break;
      if (size.shared_bytes(own_steps) > device.shared_bytes) continue;
      const std::int64_t blocks = tiles * splits;
      const auto together =
          static_cast<double>(std::min<std::int64_t>(size.blocks, ceil_divide(blocks, device.multiprocessors)));
      const auto waves = static_cast<double>(
          ceil_divide(blocks, std::int64_t{device.multiprocessors} * static_cast<std::int64_t>(together)));
      const double work = size.rows * size.columns * size.chunks / static_cast<double>(size.speed);
      const double step = std::max(step_cycles, work * together);
      const double stores = size.rows * size.columns * together * element_cycles;
      const double cycles = waves * (own_steps * step + block_cycles + stores + (splits > 1 ? cluster_cycles : 0));
      if (cycles < least) {
        least = cycles;
        best = {.tile = static_cast<int>(tile), .splits = splits};
      }
    }
  }
  return best;
}

}  // namespace

Status tensor_core_fits(const Convolution& op, const Problem& problem) {
  const TensorDesc& x = problem.inputs[Convolution::x];
  if (x.dtype == DType::f32) return unsupported("supports f16, bf16 and i8");
  const ConvolutionPlan plan = plan_convolution(op, problem);
  const auto& [depth, height, width] = plan.axis;
  if (depth.in != 1 || depth.kernel != 1 || depth.out != 1) return unsupported("supports 1 or 2 spatial axes");
  if (height.kernel > most_window || width.kernel > most_window)
    return unsupported("supports windows of up to 16 x 16");
  const std::int64_t unit = channels_per_unit(x.dtype, x.layout);
  if (plan.group > 1) {
    const bool vectors = x.layout != Layout::linear;
    if (vectors && (plan.group_channels() % unit != 0 || plan.group_outputs() % unit != 0)) {
      return unsupported("supports groups of whole vectors of channels");
    }
    if (2 * plan.group_channels() < unit) return unsupported("supports groups of at least half a chunk of channels");
  }
  const auto element = static_cast<std::int64_t>(size_of(x.dtype));
  const std::int64_t group_channels = padded(plan.group_channels(), unit);
  if (group_channels == 0) return unsupported("supports at least one channel");
  if (group_channels * plan.window() * element > most_chunks * chunk_bytes) {
    return unsupported("supports sums of up to " + std::to_string(most_chunks * chunk_bytes / element) + " products");
  }
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  const std::int64_t image_bytes = group_channels * plan.group * element * plan.in_pixels();
  const std::int64_t reach = ((height.kernel - 1) * height.dilation * width.in + (width.kernel - 1) * width.dilation) *
                             group_channels * plan.group * element;
  const std::int64_t pixels = plan.batch * plan.out_pixels();
  if (image_bytes > most || reach > most || pixels > most - 1024 || plan.outputs > most / 2) {
    return unsupported("supports images of up to 2 GiB and up to 2^31 pixels");
  }
  return {};
}

Status tensor_core_run(const Convolution& op, const Problem& problem, const Buffers& buffers,
                       const CudaContext& context) {
  const TensorDesc& from = problem.inputs[Convolution::x];
  const TensorDesc& to = problem.outputs[0];
  if (to.extents.element_count() == 0) return {};
  DeviceTraits device;
  if (Status status = current_device(device); !status.ok()) return status;
  constexpr int ampere = 8;
  if (from.dtype == DType::bf16 && device.compute_major < ampere) return direct_run(op, problem, buffers, context);
  const ConvolutionPlan plan = plan_convolution(op, problem);
  TensorCoreTask task = make_task(op, plan, to);
  task.bias = static_cast<const float*>(buffers.inputs[Convolution::bias]);
  task.scale = static_cast<const float*>(buffers.inputs[Convolution::scale]);
  task.y = buffers.outputs[0];
  task.x = static_cast<const char*>(buffers.inputs[Convolution::x]);
  task.weight = static_cast<const char*>(buffers.inputs[Convolution::weight]);
  if (from.layout == Layout::linear) {
    const RepackedSizes sizes = RepackedSizes::of(plan, from.dtype);
    auto* x = static_cast<char*>(buffers.workspace);
    char* weight = x + sizes.x_bytes;
    if (Status status = run_repack(from.dtype, task.x, x, plan.batch * plan.group, plan.group_channels(),
                                   plan.in_pixels(), sizes.group_channels, plan.group, context);
        !status.ok()) {
      return status;
    }
    if (Status status = run_repack(from.dtype, task.weight, weight, plan.outputs, plan.group_channels(), plan.window(),
                                   sizes.group_channels, 1, context);
        !status.ok()) {
      return status;
    }
    task.x = x;
    task.weight = weight;
    task.group_channels = static_cast<int>(sizes.group_channels);  // The padding contains zeros.
    const std::size_t store_bytes = 8 * size_of(to.dtype);
    task.wide_stores = task.image_pixels % 8 == 0 && is_aligned(task.y, store_bytes);
  } else if (!is_aligned(task.x, chunk_bytes) || !is_aligned(task.weight, chunk_bytes) ||
             !is_aligned(task.y, chunk_bytes)) {
    return invalid_argument("Convolution: the addresses of hwc8 and chw32 tensors must be multiples of 16");
  }
  const TensorCoreChoice choice = choose(task, device);
  switch (from.dtype) {
    case DType::f16: return launch_tensor_core<__half>(task, choice, context);
    case DType::bf16: return launch_tensor_core<__nv_bfloat16>(task, choice, context);
    default: return launch_tensor_core<std::int8_t>(task, choice, context);
  }
}

}  // namespace graft::ops

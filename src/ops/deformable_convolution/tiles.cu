// Copies of x and weight of DeformableConvolution in the layout of the kernels that compute tiles.
#include <limits>

#include "kernels/numbers.cuh"
#include "ops/deformable_convolution/tiles.cuh"

namespace graft::ops {
namespace {

constexpr int repack_side = 64;
constexpr int repack_threads = 256;

struct DeformableRepack {
  std::int64_t channels;         ///< The number of channels in a section.
  std::int64_t stored_channels;  ///< The number of channels in a section, including padding.
  std::int64_t sections;
  std::int64_t pixels;
  int pixel_tiles;
  int channel_tiles;
};

/// Copies N,C,pixel to N,pixel,section,channel in squares through shared memory, so that both tensors are accessed
/// along their innermost axis.
template <class T>
__global__ void repack_image(const T* from, T* to, const DeformableRepack sizes) {
  constexpr int pitch = repack_side + 4 / static_cast<int>(sizeof(T));  // Reading a column touches every bank once.
  constexpr int rows = repack_threads / repack_side;
  __shared__ T square[repack_side][pitch];
  const int block = static_cast<int>(blockIdx.x);
  const std::int64_t first_pixel = std::int64_t{block % sizes.pixel_tiles} * repack_side;
  const int rest = block / sizes.pixel_tiles;
  const std::int64_t first_channel = std::int64_t{rest % sizes.channel_tiles} * repack_side;
  const std::int64_t item_and_section = rest / sizes.channel_tiles;
  const int along = static_cast<int>(threadIdx.x) % repack_side;
  const int first = static_cast<int>(threadIdx.x) / repack_side;
  for (int i = first; i < repack_side; i += rows) {
    const std::int64_t channel = first_channel + i;
    const std::int64_t pixel = first_pixel + along;
    const bool exists = channel < sizes.channels && pixel < sizes.pixels;
    square[i][along] =
        exists ? from[(item_and_section * sizes.channels + channel) * sizes.pixels + pixel] : static_cast<T>(0.F);
  }
  __syncthreads();
  const std::int64_t item = item_and_section / sizes.sections;
  const std::int64_t section = item_and_section % sizes.sections;
  const std::int64_t channel = first_channel + along;
  if (channel >= sizes.stored_channels) return;
  for (int i = first; i < repack_side; i += rows) {
    const std::int64_t pixel = first_pixel + i;
    if (pixel >= sizes.pixels) break;
    to[((item * sizes.pixels + pixel) * sizes.sections + section) * sizes.stored_channels + channel] = square[along][i];
  }
}

/// Copies the filters in the order of steps, one block per chunk of channels of a filter. The chunk is contiguous in
/// both layouts.
template <class T>
__global__ void repack_filters(const T* from, T* to, const DeformableTask task, int section_channels) {
  constexpr int step_channels = deformable_step_bytes / static_cast<int>(sizeof(T));
  const int chunks = task.sections_of_group * task.chunks;
  const int filter = static_cast<int>(blockIdx.x) / chunks;
  const int section_and_chunk = static_cast<int>(blockIdx.x) % chunks;
  const int section = section_and_chunk / task.chunks;
  const int first = (section_and_chunk - section * task.chunks) * step_channels;
  const int count = ::min(section_channels - first, step_channels);
  const std::int64_t group_channels = std::int64_t{task.sections_of_group} * section_channels;
  const T* const source =
      from + (filter * group_channels + std::int64_t{section} * section_channels + first) * task.taps;
  T* const target = to + std::int64_t{blockIdx.x} * task.taps * step_channels;
  for (int i = static_cast<int>(threadIdx.x); i < task.taps * step_channels; i += repack_threads) {
    const int channel = i % step_channels;
    target[i] = channel < count ? source[channel * task.taps + i / step_channels] : static_cast<T>(0.F);
  }
}

template <class T>
Status repack(const DeformableSizes& sizes, const DeformableSections& sections, const Buffers& buffers,
              const CudaContext& context, const DeformableTask& task) {
  auto* const bytes = static_cast<char*>(buffers.workspace);
  const DeformableRepack image{.channels = sections.channels,
                               .stored_channels = sections.stored_channels,
                               .sections = sections.count,
                               .pixels = sizes.in_pixels(),
                               .pixel_tiles = static_cast<int>(ceil_divide(sizes.in_pixels(), repack_side)),
                               .channel_tiles = static_cast<int>(ceil_divide(sections.stored_channels, repack_side))};
  const std::int64_t tiles = sizes.items * sections.count * image.pixel_tiles * image.channel_tiles;
  if (Status status = launch(DeformableConvolution::name, repack_image<T>, {.blocks = tiles, .threads = repack_threads},
                             context, static_cast<const T*>(buffers.inputs[DeformableConvolution::x]),
                             reinterpret_cast<T*>(bytes + sections.x_at), image);
      !status.ok()) {
    return status;
  }
  return launch(DeformableConvolution::name, repack_filters<T>,
                {.blocks = sizes.outputs * sections.of_group * sections.chunks, .threads = repack_threads}, context,
                static_cast<const T*>(buffers.inputs[DeformableConvolution::weight]),
                reinterpret_cast<T*>(bytes + sections.weight_at), task, static_cast<int>(sections.channels));
}

}  // namespace

Status fits_deformable_tiles(const DeformableConvolution& op, const Problem& problem) {
  const DeformableSizes sizes(op, problem);
  if (!DeformableSections::exist(sizes))
    return unsupported("supports only a group and an offset_group of which one divides the other");
  const DType dtype = problem.inputs[DeformableConvolution::x].dtype;
  const DeformableSections sections(sizes, dtype);
  constexpr std::int64_t least = 8;
  if (sections.channels < least || sizes.group_outputs() < least) {
    return unsupported(
        "supports at least 8 filters per group, and at least 8 channels that share a group and an offset group");
  }
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  constexpr std::int64_t least_tile = 64;
  const auto element = static_cast<std::int64_t>(size_of(dtype));
  const std::int64_t item_bytes = sizes.in_pixels() * sections.count * sections.stored_channels * element;
  const std::int64_t tiles = sizes.items * sizes.groups * ceil_divide(sizes.out_pixels(), least_tile) *
                             ceil_divide(sizes.group_outputs(), least_tile);
  if (item_bytes > most || sizes.out_pixels() > most - 2 * least_tile || sections.steps > most ||
      sizes.outputs > most || tiles > most) {
    return unsupported("supports images of up to 2 GiB and up to 2^31 pixels and filters");
  }
  return {};
}

Status prepare_deformable_task(const DeformableConvolution& op, const Problem& problem, const Buffers& buffers,
                               const CudaContext& context, DeformableTask& task) {
  const DeformableSizes sizes(op, problem);
  const DType dtype = problem.inputs[DeformableConvolution::x].dtype;
  const DeformableSections sections(sizes, dtype);
  const auto element = static_cast<std::int64_t>(size_of(dtype));
  const std::int64_t pixel_bytes = sections.count * sections.stored_channels * element;
  const auto as_int = [](std::int64_t value) { return static_cast<int>(value); };
  constexpr int vector_bytes = 16;
  const auto* workspace = static_cast<const char*>(buffers.workspace);
  task.x = workspace + sections.x_at;
  task.weight = workspace + sections.weight_at;
  task.offset = buffers.inputs[DeformableConvolution::offset];
  task.mask = sizes.has_mask ? buffers.inputs[DeformableConvolution::mask] : nullptr;
  task.bias = sizes.has_bias ? buffers.inputs[DeformableConvolution::bias] : nullptr;
  task.y = buffers.outputs[0];
  task.item_bytes = sizes.in_pixels() * pixel_bytes;
  task.pixel_bytes = as_int(pixel_bytes);
  task.section_bytes = as_int(sections.stored_channels * element);
  task.height = as_int(sizes.rows.in);
  task.width = as_int(sizes.columns.in);
  task.pixels = as_int(sizes.out_pixels());
  task.row_stride = as_int(sizes.rows.stride);
  task.column_stride = as_int(sizes.columns.stride);
  task.row_pad = as_int(sizes.rows.pad);
  task.column_pad = as_int(sizes.columns.pad);
  task.row_dilation = as_int(sizes.rows.dilation);
  task.column_dilation = as_int(sizes.columns.dilation);
  task.taps = as_int(sizes.taps());
  task.chunks = as_int(sections.chunks);
  task.steps = as_int(sections.steps);
  task.groups = as_int(sizes.groups);
  task.sections_of_group = as_int(sections.of_group);
  task.sections_of_offset_group = as_int(sections.count / sizes.offset_groups);
  task.offset_groups = as_int(sizes.offset_groups);
  task.outputs = as_int(sizes.outputs);
  task.group_outputs = as_int(sizes.group_outputs());
  task.has_wide_stores = sizes.out_pixels() * element % vector_bytes == 0 && is_aligned(task.y, vector_bytes);
  task.by_taps = Divisor(task.taps);
  task.by_chunks = Divisor(task.chunks);
  task.by_kernel_width = Divisor(as_int(sizes.columns.kernel));
  task.by_out_width = Divisor(as_int(sizes.columns.out));
  return dispatch_floats(
      dtype, [&](auto element) { return repack<decltype(element)>(sizes, sections, buffers, context, task); });
}

}  // namespace graft::ops

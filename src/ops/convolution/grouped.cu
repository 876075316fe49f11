// Convolution in groups of 8, 16 or 32 channels on tensor cores. A block computes tiles of 16 x 16 pixels and 32
// channels of y and copies the pixels that the windows of a tile read to shared memory once.
#include "kernels/mma.cuh"
#include "ops/convolution/patches.cuh"

namespace graft::ops {
namespace {

constexpr int block_channels = 32;
constexpr int column_tiles = block_channels / 8;
constexpr int unit_bytes = step_bytes / 2;

struct GroupedTask : PatchTask {
  std::int64_t image_bytes;
  std::int64_t block_bytes;  ///< The number of bytes from one block of channels of x to the next.
  int pixel_bytes;
  int channels;
  int blocks;  ///< The number of blocks of channels.
};

/// The sizes of a block in units of 16 bytes of a pixel, or of a tap of a filter. A group of channels has GroupUnits
/// units.
template <class T, int GroupUnits>
struct GroupedForm {
  static constexpr int units = block_channels * static_cast<int>(sizeof(T)) / unit_bytes;
  static constexpr int groups = units / GroupUnits;          ///< The number of groups in a block of channels.
  static constexpr int group_tiles = column_tiles / groups;  ///< The number of tiles of 8 channels of y in a group.
  /// The distance in bytes between pixels, which places eight adjacent pixels in different banks.
  static constexpr int pixel_pitch = (units + 1) * unit_bytes;

  // The distance in bytes between filters, and the offsets in shared memory of the filters (at 0), biases, factors,
  // zeros, offsets of the units, and two patches.
  int pitch, biases, factors, zeros, offsets, patches, patch_bytes, bytes;

  GRAFT_HOST_DEVICE GroupedForm(int steps, int patch_pixels)
      : pitch(steps * step_bytes + unit_bytes),
        biases(block_channels * pitch),
        factors(biases + block_channels * 4),
        zeros(factors + block_channels * 4),
        offsets(zeros + unit_bytes),
        patches(offsets + (steps * 2 * 4 + unit_bytes - 1) / unit_bytes * unit_bytes),
        patch_bytes(patch_pixels * pixel_pitch),
        bytes(patches + 2 * patch_bytes) {}
};

template <class T, int GroupUnits>
__global__ void __launch_bounds__(patch_threads, 2) grouped(const GroupedTask task) {
  using Form = GroupedForm<T, GroupUnits>;
  using Sum = SumOf<T>;
  constexpr bool bytes = std::is_same_v<T, std::int8_t>;
  extern __shared__ uint4 shared[];
  auto* const memory = reinterpret_cast<char*>(shared);
  const Form at(task.steps, task.patch_pixels);
  auto* const biases = reinterpret_cast<float*>(memory + at.biases);
  auto* const factors = reinterpret_cast<float*>(memory + at.factors);
  auto* const offsets = reinterpret_cast<int*>(memory + at.offsets);
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  const int warp = thread / 32;
  const int first_tile = static_cast<int>(blockIdx.x) / task.blocks;
  const int block = static_cast<int>(blockIdx.x) - first_tile * task.blocks;
  const int first_channel = block * block_channels;
  const int tile_step = static_cast<int>(gridDim.x) / task.blocks;
  // The last block of hwc8 may have fewer channels, in whole groups.
  const int block_units =
      ::min((task.channels - first_channel) * static_cast<int>(sizeof(T)) / unit_bytes, Form::units);

  const int own_unit = thread % Form::units;
  const auto copy_patch = [&](int tile, int stage) {
    if (tile < task.tiles && own_unit < block_units) {
      const PatchTask::Place place = task.place_of(tile);
      const char* const from =
          task.x + place.image * task.image_bytes + block * task.block_bytes + own_unit * unit_bytes;
      const int first_row = place.row * task.row_stride - task.row_pad;
      const int first = place.column * task.column_stride - task.column_pad;
      const unsigned to = shared_address(memory + at.patches + stage * at.patch_bytes + own_unit * unit_bytes);
      for (int i = thread / Form::units; i < task.patch_pixels; i += patch_threads / Form::units) {
        const int patch_row = task.by_patch_width.quotient(i);
        const int row = first_row + patch_row;
        const int column = first + i - patch_row * task.patch_width;
        const bool inside = row >= 0 && row < task.height && column >= 0 && column < task.width;
        const std::int64_t pixel = inside ? std::int64_t{row} * task.width + column : 0;
        copy_async(to + static_cast<unsigned>(i * Form::pixel_pitch), from + pixel * task.pixel_bytes, inside ? 16 : 0);
      }
    }
    commit_copies();
  };

  // Filters of a group are ordered so that the sums of a thread belong to adjacent channels.
  const int filter_units = task.taps * GroupUnits;
  const int padded_units = task.steps * 2;
  for (int i = thread; i < block_channels * padded_units; i += patch_threads) {
    const int channel = i / padded_units;
    const int unit = i - channel * padded_units;
    constexpr int group_channels = Form::group_tiles * 8;
    constexpr int neighbours = Form::group_tiles * 2;
    const int in_group = channel % group_channels;
    const int row = channel - in_group + in_group % neighbours / 2 * 8 + in_group / neighbours * 2 + in_group % 2;
    const bool exists = first_channel + channel < task.channels && unit < filter_units;
    const std::int64_t from = exists ? std::int64_t{first_channel + channel} * filter_units + unit : 0;
    copy_async(shared_address(memory + row * at.pitch + unit * unit_bytes), task.weight + from * unit_bytes,
               exists ? 16 : 0);
  }
  copy_patch(first_tile, 0);
  for (int i = thread; i < block_channels; i += patch_threads) {
    const bool exists = first_channel + i < task.channels;
    biases[i] = exists ? task.bias[first_channel + i] : 0.F;
    factors[i] = exists ? task.epilogue.factor(task.scale[first_channel + i]) : 0.F;
  }
  for (int i = thread; i < padded_units; i += patch_threads) {
    const int pixel = task.pixel_of_tap(i / GroupUnits);
    offsets[i] = i < filter_units ? pixel * Form::pixel_pitch + i % GroupUnits * unit_bytes : -1;
  }
  if (thread < 4) reinterpret_cast<unsigned*>(memory + at.zeros)[thread] = 0;

  const unsigned zeros = shared_address(memory + at.zeros);
  const unsigned right =
      shared_address(memory) + static_cast<unsigned>((lane % 8 + lane / 16 * 8) * at.pitch + lane / 8 % 2 * unit_bytes);
  const int row_bytes = task.row_stride * task.patch_width * Form::pixel_pitch;
  const int own_pixel = warp * warp_rows * row_bytes + lane % 16 * task.column_stride * Form::pixel_pitch;
  int stage = 0;
  for (int tile = first_tile; tile < task.tiles; tile += tile_step) {
    copy_patch(tile + tile_step, stage ^ 1);
    wait_for_copies<1>();
    __syncthreads();
    const unsigned patch =
        shared_address(memory + at.patches) + static_cast<unsigned>(stage * at.patch_bytes + own_pixel);
    Sum sums[warp_rows][column_tiles][4] = {};
#pragma unroll 2
    for (int step = 0; step < task.steps; ++step) {
      const int offset = offsets[step * 2 + lane / 16];
      unsigned left[warp_rows][4];
      unsigned pair[4];
#pragma unroll
      for (int j = 0; j < column_tiles; ++j) {
        if (j % 2 == 0) load_matrices(pair, right + static_cast<unsigned>(j * 8 * at.pitch + step * step_bytes));
        if (j % Form::group_tiles == 0) {
          const int group = j / Form::group_tiles * GroupUnits * unit_bytes;
#pragma unroll
          for (int i = 0; i < warp_rows; ++i) {
            load_matrices(left[i], offset < 0 ? zeros : patch + static_cast<unsigned>(i * row_bytes + offset + group));
          }
        }
#pragma unroll
        for (int i = 0; i < warp_rows; ++i) {
          multiply_add<T>(sums[i][j], left[i], pair[j % 2 * 2], pair[j % 2 * 2 + 1]);
        }
      }
    }
    __syncthreads();
    stage ^= 1;

    const PatchTask::Place place = task.place_of(tile);
    constexpr int count = Form::group_tiles * 2;  // the number of adjacent channels that a thread stores together
#pragma unroll
    for (int g = 0; g < Form::groups; ++g) {
      const int in_block = (g * 4 + lane % 4) * count;
      const int k = first_channel + in_block;
      if (k >= task.channels) break;
#pragma unroll
      for (int i = 0; i < 2 * warp_rows; ++i) {
        const int half = i % 2;
        const int row = place.row + warp * warp_rows + i / 2;
        const int column = place.column + lane / 4 + half * 8;
        if (row >= task.out_height || column >= task.out_width) continue;
        float values[count];
#pragma unroll
        for (int c = 0; c < count; ++c) {
          const Sum sum = sums[i / 2][g * Form::group_tiles + c / 2][2 * half + c % 2];
          values[c] = fmaf(static_cast<float>(sum), bytes ? factors[in_block + c] : 1.F, biases[in_block + c]);
        }
        task.epilogue.activate_all(values);
        const std::int64_t pixel = std::int64_t{row} * task.out_width + column;
        const std::int64_t image_pixels = std::int64_t{task.out_height} * task.out_width;
        if constexpr (bytes) {
          const std::int64_t plane = std::int64_t{place.image} * task.blocks + block;
          auto* const to = static_cast<std::int8_t*>(task.y) + (plane * image_pixels + pixel) * 32 + in_block;
          *reinterpret_cast<uint2*>(to) = make_uint2(task.quantizer.four(values), task.quantizer.four(values + 4));
        } else {
          Vector<T, count>::pack(values).store(static_cast<T*>(task.y) +
                                               (place.image * image_pixels + pixel) * task.channels + k);
        }
      }
    }
  }
  wait_for_copies<0>();
}

GroupedTask make_grouped(const Convolution& op, const ConvolutionPlan& plan, const TensorDesc& to) {
  const auto as_int = [](std::int64_t value) { return static_cast<int>(value); };
  const auto element = static_cast<std::int64_t>(size_of(to.dtype));
  const bool planes = to.layout == Layout::chw32;
  const std::int64_t steps = ceil_divide(plan.window() * plan.group_channels() * element, step_bytes);
  GroupedTask task{};
  static_cast<PatchTask&>(task) = make_patches(op, plan, to, steps);
  task.image_bytes = plan.channels * plan.in_pixels() * element;
  task.block_bytes = block_channels * element * (planes ? plan.in_pixels() : 1);
  task.pixel_bytes = as_int((planes ? block_channels : plan.channels) * element);
  task.channels = as_int(plan.channels);
  task.blocks = as_int(ceil_divide(plan.channels, block_channels));
  return task;
}

/// Calls `f` with the element type and the number of units of a group. grouped_fits() has accepted `group_channels`.
template <class F>
Status with_form(DType dtype, std::int64_t group_channels, F&& f) {
  return dispatch_device(dtype, [&](auto element) -> Status {
    using T = decltype(element);
    if constexpr (std::is_same_v<T, float>) {
      return unsupported("supports f16, bf16 and i8");
    } else if constexpr (std::is_same_v<T, std::int8_t>) {
      return f.template operator()<T, 2>();
    } else {
      if (group_channels == 8) return f.template operator()<T, 1>();
      if (group_channels == 16) return f.template operator()<T, 2>();
      return f.template operator()<T, 4>();
    }
  });
}

}  // namespace

Status grouped_fits(const Convolution& op, const Problem& problem) {
  const TensorDesc& x = problem.inputs[Convolution::x];
  if (x.layout == Layout::linear || x.dtype == DType::f32)
    return unsupported("supports f16 and bf16 in hwc8, and i8 in chw32");
  const ConvolutionPlan plan = plan_convolution(op, problem);
  const auto& [depth, height, width] = plan.axis;
  if (depth.in != 1 || depth.kernel != 1 || depth.out != 1) return unsupported("supports 1 or 2 spatial axes");
  const std::int64_t size = plan.group_channels();
  const bool known = x.dtype == DType::i8 ? size == 32 : size == 8 || size == 16 || size == 32;
  if (plan.group == 1 || size != plan.group_outputs() || !known) {
    return unsupported("supports several groups, each with 8, 16 or 32 channels of x and as many of y; for i8 only 32");
  }
  constexpr std::int64_t most_window = 256;
  constexpr int step_bits = 4;
  if (Status status = check_patches(plan, most_window, step_bits); !status.ok()) return status;
  if (plan.channels > most_patch_pixels / 2) return unsupported("supports up to 2^29 pixels");
  const GroupedTask task = make_grouped(op, plan, problem.outputs[0]);
  return with_form(x.dtype, size, [&]<class T, int GroupUnits>() -> Status {
    return check_patch_memory(GroupedForm<T, GroupUnits>(task.steps, task.patch_pixels).bytes);
  });
}

Status grouped_run(const Convolution& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
  const TensorDesc& to = problem.outputs[0];
  if (to.extents.element_count() == 0) return {};
  DeviceTraits device;
  if (Status status = current_device(device); !status.ok()) return status;
  constexpr int ampere = 8;
  if (device.compute_major < ampere) return direct_run(op, problem, buffers, context);
  const ConvolutionPlan plan = plan_convolution(op, problem);
  GroupedTask task = make_grouped(op, plan, to);
  if (Status status = set_tensors(task, buffers); !status.ok()) return status;
  return with_form(to.dtype, plan.group_channels(), [&]<class T, int GroupUnits>() {
    const GroupedForm<T, GroupUnits> form(task.steps, task.patch_pixels);
    const Grid grid = patch_grid(task, device, form.bytes, task.blocks);
    return launch("Convolution grouped", grouped<T, GroupUnits>, grid, context, task);
  });
}

}  // namespace graft::ops

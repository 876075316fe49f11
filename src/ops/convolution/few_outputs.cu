// Convolution with few channels of y on tensor cores, as in the last layers of networks that generate images. A block
// computes tiles of 16 x 16 pixels of y. It copies the pixels that the windows of a tile read, and the filters, to
// shared memory in steps of 32 bytes of channels. Each pixel is copied once, while an implicit matrix product would
// read it once per tap.
#include "ops/convolution/patches.cuh"

namespace graft::ops {
namespace {

constexpr int most_outputs = 8;  // the number of columns of one tensor-core instruction
constexpr int half_bytes = 16;   // half a step: one row of a fragment
constexpr int halves = step_bytes / half_bytes;
constexpr int tap_bytes = most_outputs * step_bytes;

struct FewOutputsTask : PatchTask {
  int outputs;
  int channel_bytes;  ///< The bytes that the channels of a pixel take; the bytes after them are padding.
  int pixel_stride;   ///< The distance in bytes from one pixel to the next.
  bool linear;        ///< Whether y is linear; otherwise it is hwc8.
  Divisor by_steps;   ///< The divisor is `steps`, the number of steps of a tile.
};

/// The layout of shared memory: two stages, then the offsets of the taps. A stage holds the first halves of all pixels
/// of a patch, then their second halves, then the filters of each tap in halves. Reading one half of eight adjacent
/// pixels touches every bank once.
struct FewOutputsMemory {
  int half, filters, stage, offsets, bytes;

  GRAFT_HOST_DEVICE explicit FewOutputsMemory(const FewOutputsTask& task)
      : half(task.patch_pixels * half_bytes),
        filters(halves * half),
        stage(filters + (task.taps + 1) / 2 * 2 * tap_bytes),
        offsets(2 * stage),
        bytes(offsets + (task.taps + 1) / 2 * 2 * 4) {}
};

template <class T>
__global__ void __launch_bounds__(patch_threads, 2) few_outputs(const FewOutputsTask task) {
  extern __shared__ uint4 shared[];
  auto* const memory = reinterpret_cast<char*>(shared);
  const FewOutputsMemory at(task);
  auto* const offsets = reinterpret_cast<int*>(memory + at.offsets);
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  const int warp = thread / 32;
  const int block = static_cast<int>(blockIdx.x);
  const int blocks = static_cast<int>(gridDim.x);
  const int padded_taps = (task.taps + 1) / 2 * 2;
  const int all_steps = (task.tiles - block + blocks - 1) / blocks * task.steps;

  const auto copy_step = [&](int number) {
    if (number < all_steps) {
      const int round = task.by_steps.quotient(number);
      const int first_byte = (number - round * task.steps) * step_bytes;
      const unsigned to = shared_address(memory + number % 2 * at.stage);
      const PatchTask::Place place = task.place_of(block + round * blocks);
      const std::int64_t image = std::int64_t{place.image} * task.height * task.width;
      const int first_row = place.row * task.row_stride - task.row_pad;
      const int first_column = place.column * task.column_stride - task.column_pad;
      for (int i = thread; i < task.patch_pixels * halves; i += patch_threads) {
        const int pixel = i / halves;
        const int byte = first_byte + i % halves * half_bytes;
        const int patch_row = task.by_patch_width.quotient(pixel);
        const int row = first_row + patch_row;
        const int column = first_column + pixel - patch_row * task.patch_width;
        const bool inside =
            byte < task.channel_bytes && row >= 0 && row < task.height && column >= 0 && column < task.width;
        const std::int64_t from =
            inside ? (image + std::int64_t{row} * task.width + column) * task.pixel_stride + byte : std::int64_t{0};
        copy_async(to + static_cast<unsigned>(i % halves * at.half + pixel * half_bytes), task.x + from,
                   inside ? ::min(task.channel_bytes - byte, half_bytes) : 0);
      }
      for (int i = thread; i < padded_taps * halves * most_outputs; i += patch_threads) {
        const int k = i % most_outputs;
        const int byte = first_byte + i / most_outputs % halves * half_bytes;
        const int tap = i / (most_outputs * halves);
        const bool exists = k < task.outputs && tap < task.taps && byte < task.channel_bytes;
        const std::int64_t from =
            exists ? (std::int64_t{k} * task.taps + tap) * task.pixel_stride + byte : std::int64_t{0};
        copy_async(to + static_cast<unsigned>(at.filters + i * half_bytes), task.weight + from,
                   exists ? ::min(task.channel_bytes - byte, half_bytes) : 0);
      }
    }
    commit_copies();
  };

  copy_step(0);
  // The tap that pads an odd number of taps has filters of zero. Its products are skipped below, because an infinite
  // pixel times zero would be NaN.
  for (int i = thread; i < padded_taps; i += patch_threads) {
    offsets[i] = task.pixel_of_tap(::min(i, task.taps - 1)) * half_bytes;
  }
  const int row_bytes = task.row_stride * task.patch_width * half_bytes;
  const unsigned pixels_at = static_cast<unsigned>(lane / 16 * at.half + warp * warp_rows * row_bytes +
                                                   lane % 16 * task.column_stride * half_bytes);
  const unsigned filters_at = static_cast<unsigned>(at.filters + lane * half_bytes);
  const bool odd = task.taps % 2 != 0;

  float sums[warp_rows][4] = {};
  for (int number = 0; number < all_steps; ++number) {
    const int round = task.by_steps.quotient(number);
    const int step = number - round * task.steps;
    if (step == 0) {
#pragma unroll
      for (auto& row : sums) {
#pragma unroll
        for (float& sum : row) sum = 0;
      }
    }
    copy_step(number + 1);
    wait_for_copies<1>();
    __syncthreads();
    const unsigned stage = shared_address(memory + number % 2 * at.stage);
#pragma unroll 2
    for (int tap = 0; tap < padded_taps; tap += 2) {
      unsigned pair[4];
      load_matrices(pair, stage + filters_at + static_cast<unsigned>(tap * tap_bytes));
#pragma unroll
      for (int which = 0; which < 2; ++which) {
        if (which == 1 && odd && tap + 2 == padded_taps) break;
        const unsigned pixels = stage + pixels_at + static_cast<unsigned>(offsets[tap + which]);
#pragma unroll
        for (int i = 0; i < warp_rows; ++i) {
          unsigned left[4];
          load_matrices(left, pixels + static_cast<unsigned>(i * row_bytes));
          multiply_step<T>(sums[i], left, pair[2 * which], pair[2 * which + 1]);
        }
      }
    }
    __syncthreads();
    if (step + 1 < task.steps) continue;

    const PatchTask::Place place = task.place_of(block + round * blocks);
    const int k = lane % 4 * 2;
    const float biases[2] = {k < task.outputs ? task.bias[k] : 0.F, k + 1 < task.outputs ? task.bias[k + 1] : 0.F};
    const std::int64_t image_pixels = std::int64_t{task.out_height} * task.out_width;
#pragma unroll
    for (int i = 0; i < 2 * warp_rows; ++i) {
      const int half = i % 2;
      const int row = place.row + warp * warp_rows + i / 2;
      const int column = place.column + lane / 4 + half * 8;
      if (row >= task.out_height || column >= task.out_width) continue;
      float values[2] = {sums[i / 2][2 * half] + biases[0], sums[i / 2][2 * half + 1] + biases[1]};
      task.epilogue.activate_all(values);
      const std::int64_t pixel = std::int64_t{row} * task.out_width + column;
      if (task.linear) {
        auto* const to =
            static_cast<T*>(task.y) + (std::int64_t{place.image} * task.outputs + k) * image_pixels + pixel;
        if (k < task.outputs) to[0] = static_cast<T>(values[0]);
        if (k + 1 < task.outputs) to[image_pixels] = static_cast<T>(values[1]);
      } else {
        const auto pair = Vector<T, 2>::pack(values).first(::max(task.outputs - k, 0));
        pair.store(static_cast<T*>(task.y) + (place.image * image_pixels + pixel) * most_outputs + k);
      }
    }
  }
  wait_for_copies<0>();
}

/// Returns the task for a problem, without the addresses of its tensors. Pixels of linear tensors are copied to whole
/// chunks of 16 bytes first.
FewOutputsTask make_few_outputs(const Convolution& op, const ConvolutionPlan& plan, const TensorDesc& to) {
  const auto element = static_cast<std::int64_t>(size_of(to.dtype));
  const std::int64_t channel_bytes = plan.channels * element;
  FewOutputsTask task{};
  static_cast<PatchTask&>(task) = make_patches(op, plan, to, ceil_divide(channel_bytes, step_bytes));
  task.outputs = static_cast<int>(plan.outputs);
  task.channel_bytes = static_cast<int>(channel_bytes);
  task.linear = to.layout == Layout::linear;
  const std::int64_t unit = task.linear ? half_bytes : channels_per_vector(to.layout) * element;
  task.pixel_stride = static_cast<int>(ceil_divide(channel_bytes, unit) * unit);
  task.by_steps = Divisor(task.steps);
  return task;
}

}  // namespace

Status few_outputs_fits(const Convolution& op, const Problem& problem) {
  const TensorDesc& x = problem.inputs[Convolution::x];
  if (x.dtype == DType::i8) return unsupported("supports f32, f16 and bf16");
  if (x.dtype == DType::f32 && !op.allow_tf32) return unsupported("supports f32 only with allow_tf32 = 1");
  const ConvolutionPlan plan = plan_convolution(op, problem);
  const auto& [depth, height, width] = plan.axis;
  if (depth.in != 1 || depth.kernel != 1 || depth.out != 1) return unsupported("supports 1 or 2 spatial axes");
  if (plan.group != 1 || plan.outputs > most_outputs) return unsupported("supports one group of up to 8 channels of y");
  // With fewer taps an implicit matrix product loads few pixels twice; with fewer channels much of a step would consist
  // of zeros.
  constexpr std::int64_t fewest_taps = 9;
  constexpr std::int64_t fewest_bytes = 16;
  constexpr std::int64_t most_channels = 1 << 14;
  if (plan.window() < fewest_taps || plan.channels > most_channels ||
      plan.channels * static_cast<std::int64_t>(size_of(x.dtype)) < fewest_bytes) {
    return unsupported(
        "supports windows of at least 9 elements, and pixels whose channels have at least 16 bytes and are at most "
        "16384");
  }
  constexpr std::int64_t most_window = 1024;
  constexpr int step_bits = 6;
  if (Status status = check_patches(plan, most_window, step_bits); !status.ok()) return status;
  return check_patch_memory(FewOutputsMemory(make_few_outputs(op, plan, problem.outputs[0])).bytes);
}

Status few_outputs_run(const Convolution& op, const Problem& problem, const Buffers& buffers,
                       const CudaContext& context) {
  const TensorDesc& to = problem.outputs[0];
  if (to.extents.element_count() == 0) return {};
  DeviceTraits device;
  if (Status status = current_device(device); !status.ok()) return status;
  if (device.compute_major < ampere) return run_before_ampere(op, problem, buffers, context);
  const ConvolutionPlan plan = plan_convolution(op, problem);
  FewOutputsTask task = make_few_outputs(op, plan, to);
  if (task.linear) {
    const Repacked repacked = Repacked::of(plan, problem, buffers);
    if (Status status = repacked.run(context); !status.ok()) return status;
    set_tensors(task, buffers, repacked);
  } else if (Status status = set_tensors(task, buffers); !status.ok()) {
    return status;
  }
  const Grid grid = patch_grid(task, device, FewOutputsMemory(task).bytes, 1);
  switch (to.dtype) {
    case DType::f16: return launch("Convolution few_outputs", few_outputs<__half>, grid, context, task);
    case DType::bf16: return launch("Convolution few_outputs", few_outputs<__nv_bfloat16>, grid, context, task);
    default: return launch("Convolution few_outputs", few_outputs<float>, grid, context, task);
  }
}

}  // namespace graft::ops

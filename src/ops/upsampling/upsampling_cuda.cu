// CUDA kernels of Upsampling: which of them takes which problem.
#include "ops/upsampling/doubled.cuh"
#include "ops/upsampling/interpolated.cuh"
#include "ops/upsampling/nearest.cuh"
#include "ops/upsampling/staged.cuh"
#include "ops/upsampling/upsampling.hpp"

namespace graft {
namespace {

/// Rows of the output that a thread makes, if there are threads enough; rows of the input for "doubled".
struct Policy {
  static constexpr int rows = 32;
  static constexpr int doubled_rows = 2;
  static constexpr int doubled_rows_i8 = 3;
  static constexpr int doubled_channel_rows = 4;
  static constexpr int interpolated_columns = 4;  ///< More take more registers, and more of a row is waited for.
};

/// Packed i8 hold results of at most 2^21 steps before they saturate.
constexpr float most_steps = 16384.F;

float ratio_of(const Upsampling& op, const Problem& problem) {
  return problem.inputs[0].dtype == DType::i8 ? op.x_scale / op.y_scale : 1.F;
}

/// What a packed result may be, of a step of x.
float gain_of(const Upsampling& op, const Problem& problem) {
  const float overshoot = op.mode == Interpolation::cubic ? 2 + std::abs(op.cubic_a) : 1.F;
  const float ratio = ratio_of(op, problem);
  // Of nearest, every step but 0 saturates anyway.
  return op.mode == Interpolation::nearest ? std::min(ratio, most_steps) : ratio * overshoot * overshoot * overshoot;
}

Status fits_any(const Upsampling& /*op*/, const Problem& problem) {
  const Extents& in = problem.inputs[0].extents;
  const Extents& out = problem.outputs[0].extents;
  const std::int64_t padding = channels_per_vector(problem.inputs[0].layout);
  const std::int64_t pitch = problem.inputs[0].layout == Layout::linear ? 1 : ceil_divide(in[1], padding) * padding;
  const std::int64_t longest = std::max(in[in.rank() - 1], out[out.rank() - 1]) * pitch;
  if (longest <= std::numeric_limits<std::int32_t>::max()) return {};
  return unsupported("takes rows of less than 2^31 elements, found " + std::to_string(longest));
}

Status fits_packed(const Upsampling& op, const Problem& problem) {
  if (!(gain_of(op, problem) <= most_steps)) return unsupported("takes x_scale / y_scale up to 16384");
  return fits_any(op, problem);
}

bool is_doubled(const Upsampling& op, const SampledAxis& axis) {
  if (axis.out != 2 * axis.in) return false;
  const bool by_two = 2 * axis.step == axis.divisor;
  if (op.mode == Interpolation::nearest) return by_two && axis.offset >= 0 && axis.offset < axis.step;
  return op.coordinate_mode == CoordinateMode::align_corners ||
         (op.coordinate_mode == CoordinateMode::half_pixel && by_two);
}

/// Columns of the input to a thread: what makes 128 bits of the output. Of other widths, one.
template <class T>
constexpr int doubled_columns = widest<T> / 2;

Status fits_doubled(const Upsampling& op, const Problem& problem) {
  const bool is_linear = problem.inputs[0].layout == Layout::linear;
  if (op.mode == Interpolation::cubic || (op.mode == Interpolation::nearest && !is_linear)) {
    return unsupported("takes linear interpolation, and nearest in the linear layout");
  }
  const auto axes = sampled_axes(op, problem);
  if (axes[0].out > 1 || !is_doubled(op, axes[1]) || !is_doubled(op, axes[2])) {
    return unsupported("takes two axes of twice the size");
  }
  if (is_linear && problem.inputs[0].dtype == DType::i8 && axes[2].in % doubled_columns<std::int8_t> != 0) {
    return unsupported("takes rows of a multiple of 8 elements of i8");
  }
  return fits_packed(op, problem);
}

UpsamplingTask make_task(const Upsampling& op, const Problem& problem) {
  const TensorDesc& x = problem.inputs[0];
  const auto axes = sampled_axes(op, problem);
  UpsamplingTask task{.z = WalkedAxis::make(axes[0]), .y = WalkedAxis::make(axes[1]), .x = WalkedAxis::make(axes[2])};
  task.channels = static_cast<int>(x.extents[1]);
  task.planes = x.extents[0] * x.extents[1];
  if (x.layout == Layout::hwc8) {
    task.planes = x.extents[0];
    task.pitch = static_cast<int>(ceil_divide(x.extents[1], 8) * 8);
  } else if (x.layout == Layout::chw32) {
    task.blocks = ceil_divide(x.extents[1], 32);
    task.planes = x.extents[0] * task.blocks;
    task.pitch = 32;
  }
  const std::int64_t lines = task.planes * axes[0].out * axes[1].out;
  if (x.layout == Layout::linear && axes[0].is_identity() && axes[1].is_identity() &&
      lines <= Upsampling::largest_size) {
    // Only rows are resampled: those of all planes are alike.
    task.planes = 1;
    task.z = WalkedAxis::make({});
    task.y.in = task.y.out = static_cast<int>(lines);
  }
  task.in_row = axes[2].in * task.pitch;
  task.out_row = axes[2].out * task.pitch;
  task.cubic_a = op.cubic_a;
  task.x_scale = op.x_scale;
  task.y_scale = op.y_scale;
  task.ratio = op.mode == Interpolation::nearest ? gain_of(op, problem) : ratio_of(op, problem);
  return task;
}

/// Calls `f(task, device, x, y)` with typed addresses, unless there is nothing to do.
template <class F>
Status with_task(const Upsampling& op, const Problem& problem, const Buffers& buffers, F&& f) {
  if (problem.outputs[0].extents.element_count() == 0) return {};
  UpsamplingTask task = make_task(op, problem);
  DeviceTraits device;
  if (Status status = current_device(device); !status.ok()) return status;
  return dispatch_device(problem.inputs[0].dtype, [&](auto element) {
    using T = decltype(element);
    return f(task, device, static_cast<const T*>(buffers.inputs[0]), static_cast<T*>(buffers.outputs[0]));
  });
}

/// What a piece of a row takes of the input, at most; a multiple of 16 so that it begins and ends in whole vectors.
template <int Taps>
std::int64_t window_of(const SampledAxis& axis) {
  const std::int64_t columns = std::min<std::int64_t>(32 * detail::staged_columns<Taps>, axis.out);
  const std::int64_t window = std::min(axis.in, (columns - 1) * axis.step / axis.divisor + Taps + 1) + 16;
  return ceil_divide(window, 16) * 16;
}

std::int64_t window_of(const Upsampling& op, const SampledAxis& axis) {
  return op.mode == Interpolation::cubic ? window_of<4>(axis) : window_of<2>(axis);
}

Status fits_staged(const Upsampling& op, const Problem& problem) {
  constexpr std::int64_t shared_bytes = 48 << 10;
  if (op.mode == Interpolation::nearest || problem.inputs[0].layout != Layout::linear) {
    return unsupported("takes the linear layout, linear or cubic");
  }
  constexpr auto longest = shared_bytes / static_cast<std::int64_t>(sizeof(float)) / detail::staged_warps;
  const std::int64_t window = window_of(op, sampled_axes(op, problem)[2]);
  if (window > longest) {
    return unsupported("takes up to " + std::to_string(longest) + " elements for 256 columns, found " +
                       std::to_string(window));
  }
  return fits_packed(op, problem);
}

template <class T, int Taps>
Status run_pieces(const Upsampling& op, const Problem& problem, const UpsamplingTask& task, const DeviceTraits& device,
                  const T* x, T* y, const CudaContext& context) {
  using namespace detail;
  constexpr int most_lines = 16;
  constexpr int N = sizeof(T) == 4 ? 1 : 4 / static_cast<int>(sizeof(T));
  StagedTask staged_task{.task = task,
                         .lines = task.planes * task.z.out * task.y.out,
                         .lines_each = 1,
                         .pieces = static_cast<int>(ceil_divide(task.x.out, 32 * staged_columns<Taps>)),
                         .window = static_cast<int>(window_of(op, sampled_axes(op, problem)[2]))};
  const std::int64_t warps = std::int64_t{2} * device.multiprocessors * device.threads_per_multiprocessor / 32;
  staged_task.lines_each =
      static_cast<int>(std::clamp<std::int64_t>(staged_task.lines * staged_task.pieces / warps, 1, most_lines));
  const std::int64_t items = ceil_divide(staged_task.lines, staged_task.lines_each) * staged_task.pieces;
  const Grid grid{.blocks = ceil_divide(items, staged_warps),
                  .threads = staged_threads,
                  .cluster = 1,
                  .shared_bytes = staged_task.window * static_cast<int>(sizeof(float)) * staged_warps};
  const bool wide = is_aligned(x, 16) && task.x.in % widest<T> == 0;
  const bool even = is_aligned(y, N * sizeof(T)) && task.x.out % N == 0;
  const auto run = [&](auto* kernel) { return launch("Upsampling staged", kernel, grid, context, x, y, staged_task); };
  if (even) return run(wide ? staged<T, Taps, N, true> : staged<T, Taps, N, false>);
  return run(wide ? staged<T, Taps, 1, true> : staged<T, Taps, 1, false>);
}

Status run_staged(const Upsampling& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
  return with_task(op, problem, buffers,
                   [&]<class T>(UpsamplingTask& task, const DeviceTraits& device, const T* x, T* y) {
                     if (op.mode == Interpolation::cubic)
                       return run_pieces<T, 4>(op, problem, task, device, x, y, context);
                     return run_pieces<T, 2>(op, problem, task, device, x, y, context);
                   });
}

/// A thread for as many rows as leave threads enough.
void distribute(UpsamplingTask& task, int columns, int channels, const DeviceTraits& device) {
  task.parts = task.pitch / channels;
  const std::int64_t groups = ceil_divide(task.x.out, columns) * task.parts;
  int rows = Policy::rows;
  do {
    task.distribute(groups, task.y.out, rows);
    rows /= 2;
  } while (rows > 0 && !task.fills(device));
}

/// N columns to a thread, or V channels.
template <class T, int N, int V>
Status run_nearest(UpsamplingTask& task, const DeviceTraits& device, const T* x, T* y, const CudaContext& context) {
  using namespace detail;
  distribute(task, N, V, device);
  return launch("Upsampling nearest", nearest<T, N, V>, {ceil_divide(task.items, nearest_threads), nearest_threads},
                context, x, y, task);
}

/// V channels to a thread.
template <class T, int V>
Status run_channels(const Upsampling& op, UpsamplingTask& task, const DeviceTraits& device, const T* x, T* y,
                    const CudaContext& context) {
  using namespace detail;
  if (op.mode == Interpolation::nearest) return run_nearest<T, 1, V>(task, device, x, y, context);
  distribute(task, 1, V, device);
  auto* kernel = op.mode == Interpolation::cubic ? interpolated<T, 4, 1, V> : interpolated<T, 2, 1, V>;
  return launch("Upsampling interpolated", kernel,
                {ceil_divide(task.items, interpolated_threads), interpolated_threads}, context, x, y, task);
}

/// Linear interpolation, several columns to a thread.
template <class T>
Status run_columns(UpsamplingTask& task, const DeviceTraits& device, const T* x, T* y, const CudaContext& context) {
  using namespace detail;
  distribute(task, Policy::interpolated_columns, 1, device);
  return launch("Upsampling interpolated", interpolated<T, 2, Policy::interpolated_columns, 1>,
                {ceil_divide(task.items, interpolated_threads), interpolated_threads}, context, x, y, task);
}

Status run_any(const Upsampling& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
  return with_task(op, problem, buffers,
                   [&]<class T>(UpsamplingTask& task, const DeviceTraits& device, const T* x, T* y) {
                     return run_channels<T, 1>(op, task, device, x, y, context);
                   });
}

Status fits_vectors(const Upsampling& op, const Problem& problem) {
  const Extents& out = problem.outputs[0].extents;
  if (op.mode != Interpolation::nearest && problem.inputs[0].layout == Layout::linear &&
      (op.mode == Interpolation::cubic || out[out.rank() - 1] % Policy::interpolated_columns != 0)) {
    return unsupported("takes, of the linear layout, nearest, and linear interpolation to rows of a multiple of 4");
  }
  return fits_packed(op, problem);
}

Status run_vectors(const Upsampling& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
  constexpr std::size_t vector_bytes = 16;
  const bool is_linear = problem.inputs[0].layout == Layout::linear;
  const bool aligned =
      is_aligned(buffers.outputs[0], vector_bytes) && (is_linear || is_aligned(buffers.inputs[0], vector_bytes));
  if (!aligned) return run_any(op, problem, buffers, context);
  return with_task(op, problem, buffers,
                   [&]<class T>(UpsamplingTask& task, const DeviceTraits& device, const T* x, T* y) {
                     if (is_linear && op.mode == Interpolation::linear) {
                       return run_columns(task, device, x, y, context);
                     }
                     if (is_linear) {
                       constexpr int narrow = sizeof(T) == 1 ? 4 : 2;
                       if (task.x.out % widest<T> == 0)
                         return run_nearest<T, widest<T>, 1>(task, device, x, y, context);
                       if (task.x.out % narrow == 0) return run_nearest<T, narrow, 1>(task, device, x, y, context);
                     } else if constexpr (sizeof(T) < 4) {
                       return run_channels<T, widest<T>>(op, task, device, x, y, context);
                     }
                     return run_nearest<T, 1, 1>(task, device, x, y, context);
                   });
}

Status run_doubled(const Upsampling& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
  using namespace detail;
  if (!is_aligned(buffers.inputs[0], 16) || !is_aligned(buffers.outputs[0], 16)) {
    return op.mode == Interpolation::nearest ? run_vectors(op, problem, buffers, context)
                                             : run_any(op, problem, buffers, context);
  }
  const bool is_linear = problem.inputs[0].layout == Layout::linear;
  return with_task(op, problem, buffers,
                   [&]<class T>(UpsamplingTask& task, const DeviceTraits& device, const T* x, T* y) {
                     const auto axes = sampled_axes(op, problem);
                     const DoubledWeights along_y = DoubledWeights::make(axes[1], op.coordinate_mode);
                     const DoubledWeights along_x = DoubledWeights::make(axes[2], op.coordinate_mode);
                     // Small tensors take a thread for each row.
                     const auto distribute_rows = [&](std::int64_t groups, int rows) {
                       task.distribute(groups, task.y.in, rows);
                       const bool small = !task.fills(device);
                       if (small) task.distribute(groups, task.y.in, 1);
                       return small;
                     };
                     const auto run = [&](auto* kernel, const auto&... weights) {
                       const Grid grid{ceil_divide(task.items, doubled_threads), doubled_threads};
                       return launch("Upsampling doubled", kernel, grid, context, x, y, task, weights...);
                     };
                     const auto run_columns = [&]<int K>(std::integral_constant<int, K>) {
                       constexpr int R = sizeof(T) == 1 ? Policy::doubled_rows_i8 : Policy::doubled_rows;
                       const bool small = distribute_rows(task.x.in / K, R);
                       if (op.mode == Interpolation::nearest)
                         return run(small ? doubled_nearest<T, K, 1> : doubled_nearest<T, K, R>);
                       return run(small ? doubled_linear<T, K, 1> : doubled_linear<T, K, R>, along_y, along_x);
                     };
                     if constexpr (sizeof(T) < 4) {
                       if (!is_linear) {
                         constexpr int V = 8;
                         task.parts = task.pitch / V;
                         constexpr int R = Policy::doubled_channel_rows;
                         const bool small = distribute_rows(std::int64_t{task.x.in} * task.parts, R);
                         return run(small ? doubled_channels<T, V, 1> : doubled_channels<T, V, R>, along_y, along_x);
                       }
                     }
                     if constexpr (!std::is_same_v<T, std::int8_t>) {
                       if (task.x.in % doubled_columns<T> != 0) return run_columns(std::integral_constant<int, 1>{});
                     }
                     return run_columns(std::integral_constant<int, doubled_columns<T>>{});
                   });
}

}  // namespace

std::span<const Variant<Upsampling>> cuda_kernels(const Upsampling& /*op*/) {
  static constexpr std::array variants{Variant<Upsampling>{"doubled", fits_doubled, run_doubled},
                                       Variant<Upsampling>{"vectors", fits_vectors, run_vectors},
                                       Variant<Upsampling>{"staged", fits_staged, run_staged},
                                       Variant<Upsampling>{"scalar", fits_any, run_any}};
  return variants;
}

}  // namespace graft

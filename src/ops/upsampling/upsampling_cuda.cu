// CUDA kernels of Upsampling, and the choice between them.
#include "ops/upsampling/downsample_2x.cuh"
#include "ops/upsampling/gather.cuh"
#include "ops/upsampling/index_table.cuh"
#include "ops/upsampling/interpolated.cuh"
#include "ops/upsampling/line_buffer.cuh"
#include "ops/upsampling/nearest.cuh"
#include "ops/upsampling/separable.cuh"
#include "ops/upsampling/upsample_2x.cuh"
#include "ops/upsampling/upsample_2x_nearest.cuh"
#include "ops/upsampling/upsampling.hpp"

namespace graft::ops {
namespace {

/// The number of rows that a thread computes if there are enough threads. `nearest_rows` is a number of rows of x, for
/// "nearest" by a factor of 2; the other members are numbers of rows of y.
struct Policy {
  static constexpr int rows = 32;
  static constexpr int line_buffer_rows = 8;
  static constexpr int downsample_2x_rows = 2;
  static constexpr int nearest_rows = 2;
};

// For linear "upsample_2x": the number of rows of the input per thread, and the number of blocks that share a
// multiprocessor's registers.
template <class T>
constexpr int strip_rows = sizeof(T) == 1 ? 4 : 2;
template <class T>
constexpr int strip_blocks = sizeof(T) == 4   ? 10
                             : sizeof(T) == 2 ? 8
                                              : 5;
constexpr int strip_ahead = 3;
// The corresponding constants for linear "upsample_2x" in channel-vector layouts.
template <class T>
constexpr int cell_rows = sizeof(T) == 1 ? 8 : 3;
template <class T>
constexpr int cell_blocks = sizeof(T) == 1 ? 6 : 5;
constexpr int cell_ahead = 2;

/// The largest value of gain_of() with which kernels other than "scalar" are used, because with larger ones results
/// that saturate might become infinite, and their differences NaN.
constexpr float most_steps = 16384.F;

float ratio_of(const Upsampling& op, const Problem& problem) {
  return problem.inputs[0].dtype == DType::i8 ? op.x_scale / op.y_scale : 1.F;
}

/// Returns the largest factor by which a kernel may multiply a quantization step of x: x_scale / y_scale, times the
/// overshoot of cubic interpolation along three axes.
float gain_of(const Upsampling& op, const Problem& problem) {
  const float overshoot = op.mode == Interpolation::cubic ? 2 + std::abs(op.cubic_a) : 1.F;
  const float ratio = ratio_of(op, problem);
  // With "nearest", a larger ratio also saturates every step except 0.
  return op.mode == Interpolation::nearest ? std::min(ratio, most_steps) : ratio * overshoot * overshoot * overshoot;
}

Status fits_any(const Upsampling& /*op*/, const Problem& problem) {
  const Extents& in = problem.inputs[0].extents;
  const Extents& out = problem.outputs[0].extents;
  const std::int64_t padding = channels_per_vector(problem.inputs[0].layout);
  const std::int64_t pitch = problem.inputs[0].layout == Layout::linear ? 1 : ceil_divide(in[1], padding) * padding;
  const std::int64_t longest = std::max(in[in.rank() - 1], out[out.rank() - 1]) * pitch;
  if (longest <= std::numeric_limits<std::int32_t>::max()) return {};
  return unsupported("supports rows of less than 2^31 elements, found " + std::to_string(longest));
}

Status fits_packed(const Upsampling& op, const Problem& problem) {
  if (!(gain_of(op, problem) <= most_steps)) return unsupported("supports x_scale / y_scale up to 16384");
  return fits_any(op, problem);
}

bool is_upsample_2x(const Upsampling& op, const SampledAxis& axis) {
  if (axis.out != 2 * axis.in) return false;
  const bool by_two = 2 * axis.step == axis.divisor;
  if (op.mode == Interpolation::nearest) return by_two && axis.offset >= 0 && axis.offset < axis.step;
  return op.coordinate_mode == CoordinateMode::align_corners ||
         (op.coordinate_mode == CoordinateMode::half_pixel && by_two);
}

/// The number of columns of x whose output fills 128 bits. A thread processes this many columns, or one column in rows
/// whose length is not a multiple of it.
template <class T>
constexpr int upsample_2x_columns = widest<T> / 2;

/// Returns unsupported if 31 bits cannot count the threads when each thread computes 4 elements or more. If threads
/// compute fewer elements (for padding, or for a single row) there may be more threads; then "scalar" runs.
Status fits_quick(const Upsampling& op, const Problem& problem) {
  if (problem.outputs[0].extents.element_count() >= 4 * UpsamplingTask::most_quick_items) {
    return unsupported("supports outputs of less than 2^33 elements");
  }
  return fits_packed(op, problem);
}

Status fits_upsample_2x(const Upsampling& op, const Problem& problem) {
  if (op.mode == Interpolation::cubic) return unsupported("supports nearest and linear interpolation");
  const auto axes = sampled_axes(op, problem);
  if (axes[0].out > 1 || axes[0].in > 1 || !is_upsample_2x(op, axes[1]) || !is_upsample_2x(op, axes[2])) {
    return unsupported("supports only two axes that double in size");
  }
  const bool is_byte = size_of(problem.inputs[0].dtype) == 1;
  if (problem.inputs[0].layout == Layout::linear && is_byte && axes[2].in % upsample_2x_columns<std::int8_t> != 0) {
    return unsupported("supports types of one byte in the linear layout only with rows of a multiple of 8 elements");
  }
  return fits_quick(op, problem);
}

bool is_downsample_2x(const SampledAxis& axis) {
  return axis.in == 2 * axis.out && axis.step == 2 * axis.divisor && 2 * axis.offset == axis.divisor;
}

Status fits_downsample_2x(const Upsampling& op, const Problem& problem) {
  const TensorDesc& x = problem.inputs[0];
  const auto axes = sampled_axes(op, problem);
  if (op.mode != Interpolation::linear || x.layout != Layout::linear || axes[0].out > 1 || axes[0].in > 1 ||
      !is_downsample_2x(axes[1]) || !is_downsample_2x(axes[2])) {
    return unsupported("supports only linear interpolation with half_pixel that halves two axes, in the linear layout");
  }
  const int columns = 16 / static_cast<int>(size_of(x.dtype));
  if (axes[2].in % columns != 0) return unsupported("supports rows of a multiple of 128 bits");
  return fits_quick(op, problem);
}

Status fits_line_buffer(const Upsampling& op, const Problem& problem) {
  // In narrower rows most lanes would be idle: on an H100 "gather" took .41 to .92 of the time for rows of 7 to 30.
  constexpr std::int64_t narrowest = 40;
  const auto axes = sampled_axes(op, problem);
  if (axes[2].out < narrowest) return unsupported("supports output rows of at least 40 elements");
  if (axes[1].out < axes[1].in || (axes[0].is_identity() && axes[1].is_identity())) {
    // Other images do not use any input row twice.
    return unsupported(
        "supports images with at least as many output rows as input rows, if not only the length of the rows changes");
  }
  if (op.mode != Interpolation::linear || problem.inputs[0].layout != Layout::linear) {
    return unsupported("supports only linear interpolation in the linear layout");
  }
  for (const SampledAxis& axis : axes) {
    if (!detail::ShortAxis::fits(axis)) return unsupported("supports positions of at most 31 bits");
  }
  const Extents& in = problem.inputs[0].extents;
  const Extents& out = problem.outputs[0].extents;
  const std::int64_t channels = in[0] * in[1];
  if (channels > 0 &&
      std::max(in.element_count(), out.element_count()) / channels >= UpsamplingTask::most_quick_items) {
    return unsupported("supports channels of less than 2^31 elements");
  }
  return fits_quick(op, problem);
}

UpsamplingTask make_task(const Upsampling& op, const Problem& problem) {
  const TensorDesc& x = problem.inputs[0];
  const auto axes = sampled_axes(op, problem);
  UpsamplingTask task{
      .z = IncrementalAxis::make(axes[0]), .y = IncrementalAxis::make(axes[1]), .x = IncrementalAxis::make(axes[2])};
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
    // Only rows are resampled, so the rows of all planes form a single plane.
    task.planes = 1;
    task.z = IncrementalAxis::make({});
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

/// Calls `f(task, device, x, y)` with a task for the problem and typed addresses. Does nothing if y is empty.
template <class F>
Status with_task(const Upsampling& op, const Problem& problem, const Buffers& buffers, F&& f) {
  if (problem.outputs[0].extents.element_count() == 0) return {};
  UpsamplingTask task = make_task(op, problem);
  DeviceTraits device;
  if (Status status = current_device(device); !status.ok()) return status;
  const DType dtype = problem.inputs[0].dtype;
  // f8e4m3fn is only moved, as the bytes of i8 with equal scales.
  if (dtype == DType::f8e4m3fn) task.x_scale = task.y_scale = 1;
  return dispatch_device(dtype == DType::f8e4m3fn ? DType::i8 : dtype, [&](auto element) {
    using T = decltype(element);
    return f(task, device, static_cast<const T*>(buffers.inputs[0]), static_cast<T*>(buffers.outputs[0]));
  });
}

/// Returns the maximum number of elements of a row of x that a piece of a row of y needs, rounded up to a multiple of
/// 16, so that the elements begin and end with whole vectors.
std::int64_t window_of(const SampledAxis& axis) {
  constexpr int taps = 4;
  const std::int64_t columns = std::min<std::int64_t>(32 * detail::separable_columns, axis.out);
  const std::int64_t window = std::min(axis.in, (columns - 1) * axis.step / axis.divisor + taps + 1) + 16;
  return ceil_divide(window, 16) * 16;
}

Status fits_separable(const Upsampling& op, const Problem& problem) {
  constexpr std::int64_t shared_bytes = 48 << 10;
  if (op.mode != Interpolation::cubic || problem.inputs[0].layout != Layout::linear) {
    return unsupported("supports cubic interpolation in the linear layout");
  }
  constexpr auto longest = shared_bytes / static_cast<std::int64_t>(sizeof(float)) / detail::separable_warps;
  // Smaller problems run in "gather", which on an H100 took .41 to .54 of the time for narrow images and small tensors,
  // and 1.7 times as long for 16x64 images of 128x128.
  constexpr std::int64_t fewest_elements = std::int64_t{1} << 22;
  constexpr std::int64_t narrowest = 24 * detail::separable_columns;
  const auto axes = sampled_axes(op, problem);
  if (problem.outputs[0].extents.element_count() < fewest_elements || axes[2].out < narrowest) {
    return unsupported("supports outputs of at least 2^22 elements in rows of at least 96");
  }
  const std::int64_t window = window_of(axes[2]);
  if (window > longest) {
    return unsupported("supports up to " + std::to_string(longest) + " elements for 128 columns, found " +
                       std::to_string(window));
  }
  return fits_packed(op, problem);
}

template <class T>
Status run_pieces(const Upsampling& op, const Problem& problem, const UpsamplingTask& task, const DeviceTraits& device,
                  const T* x, T* y, const CudaContext& context) {
  using namespace detail;
  constexpr int most_lines = 16;
  constexpr int N = sizeof(T) == 4 ? 1 : 4 / static_cast<int>(sizeof(T));
  SeparableTask separable_task{.task = task,
                               .lines = task.planes * task.z.out * task.y.out,
                               .lines_each = 1,
                               .pieces = static_cast<int>(ceil_divide(task.x.out, 32 * separable_columns)),
                               .window = static_cast<int>(window_of(sampled_axes(op, problem)[2]))};
  const std::int64_t warps = std::int64_t{2} * device.multiprocessors * device.threads_per_multiprocessor / 32;
  separable_task.lines_each =
      static_cast<int>(std::clamp<std::int64_t>(separable_task.lines * separable_task.pieces / warps, 1, most_lines));
  const std::int64_t items = ceil_divide(separable_task.lines, separable_task.lines_each) * separable_task.pieces;
  const Grid grid{.blocks = ceil_divide(items, separable_warps),
                  .threads = separable_threads,
                  .cluster = 1,
                  .shared_bytes = separable_task.window * static_cast<int>(sizeof(float)) * separable_warps};
  const bool wide = is_aligned(x, 16) && task.x.in % widest<T> == 0;
  const bool even = is_aligned(y, N * sizeof(T)) && task.x.out % N == 0;
  const auto run = [&](auto* kernel) {
    return launch("Upsampling separable", kernel, grid, context, x, y, separable_task);
  };
  if (even) return run(wide ? separable<T, N, true> : separable<T, N, false>);
  return run(wide ? separable<T, 1, true> : separable<T, 1, false>);
}

Status run_separable(const Upsampling& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
  return with_task(op, problem, buffers,
                   [&]<class T>(UpsamplingTask& task, const DeviceTraits& device, const T* x, T* y) {
                     return run_pieces<T>(op, problem, task, device, x, y, context);
                   });
}

/// Assigns as many rows to each thread as possible while enough threads remain to fill the GPU. `columns` and
/// `channels` are the numbers that a thread computes in each row.
void distribute(UpsamplingTask& task, int columns, int channels, const DeviceTraits& device) {
  task.parts = task.pitch / channels;
  const std::int64_t groups = ceil_divide(task.x.out, columns) * task.parts;
  int rows = Policy::rows;
  do {
    task.distribute(groups, task.y.out, rows);
    rows /= 2;
  } while (rows > 0 && !task.fills(device));
}

/// Runs "nearest" with N columns or V channels per thread.
template <class T, int N, int V>
Status run_nearest(UpsamplingTask& task, const DeviceTraits& device, const T* x, T* y, const CudaContext& context) {
  using namespace detail;
  distribute(task, N, V, device);
  return launch("Upsampling nearest", nearest<T, N, V>, {ceil_divide(task.items, nearest_threads), nearest_threads},
                context, x, y, task);
}

/// Runs "nearest" or the general interpolation kernel with V channels per thread.
template <class T, int V>
Status run_channels(const Upsampling& op, UpsamplingTask& task, const DeviceTraits& device, const T* x, T* y,
                    const CudaContext& context) {
  using namespace detail;
  if (op.mode == Interpolation::nearest) return run_nearest<T, 1, V>(task, device, x, y, context);
  distribute(task, 1, V, device);
  auto* kernel = op.mode == Interpolation::cubic ? interpolated<T, 4, V> : interpolated<T, 2, V>;
  return launch("Upsampling interpolated", kernel,
                {ceil_divide(task.items, interpolated_threads), interpolated_threads}, context, x, y, task);
}

Status run_any(const Upsampling& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
  return with_task(op, problem, buffers,
                   [&]<class T>(UpsamplingTask& task, const DeviceTraits& device, const T* x, T* y) {
                     return run_channels<T, 1>(op, task, device, x, y, context);
                   });
}

/// Runs "line_buffer" with N columns of C planes per lane.
template <class T, int N, int C>
Status run_lanes(const Upsampling& op, const std::array<SampledAxis, 3>& axes, UpsamplingTask& task,
                 const DeviceTraits& device, const T* x, T* y, const CudaContext& context) {
  using namespace detail;
  constexpr int warps = line_buffer_threads / 32;
  const std::int64_t planes = task.planes;
  LineBufferTask line_buffer_task{.z = ShortAxis::make(axes[0]),
                                  .y = ShortAxis::make(axes[1]),
                                  .x = ShortAxis::make(axes[2]),
                                  .planes = static_cast<unsigned>(planes),
                                  .rows = 2 * Policy::line_buffer_rows,
                                  .ratio = task.ratio};
  const std::int64_t pieces = ceil_divide(axes[2].out, 32 * N);
  const std::int64_t wanted =
      std::int64_t{4} * device.multiprocessors * device.threads_per_multiprocessor / line_buffer_threads;
  do {
    line_buffer_task.rows /= 2;
    const std::int64_t strips = ceil_divide(axes[1].out, warps * line_buffer_task.rows);
    line_buffer_task.by_strips = QuickDivision::by(strips);
    line_buffer_task.blocks = pieces * strips * axes[0].out * ceil_divide(planes, C);
  } while (line_buffer_task.rows > 1 && line_buffer_task.blocks < wanted);
  if (std::max(planes, line_buffer_task.blocks) >= UpsamplingTask::most_quick_items) {
    return run_channels<T, 1>(op, task, device, x, y, context);
  }
  line_buffer_task.by_pieces = QuickDivision::by(pieces);
  line_buffer_task.by_slices = QuickDivision::by(axes[0].out);
  auto* kernel = axes[0].is_identity() ? line_buffer<T, N, C, false> : line_buffer<T, N, C, true>;
  return launch("Upsampling line_buffer", kernel, {line_buffer_task.blocks, line_buffer_threads}, context, x, y,
                line_buffer_task);
}

Status run_line_buffer(const Upsampling& op, const Problem& problem, const Buffers& buffers,
                       const CudaContext& context) {
  return with_task(op, problem, buffers,
                   [&]<class T>(UpsamplingTask& task, const DeviceTraits& device, const T* x, T* y) {
                     constexpr int N = 4 / static_cast<int>(sizeof(T));
                     const auto axes = sampled_axes(op, problem);
                     if constexpr (N > 1) {
                       constexpr int C = N == 4 ? 2 : 4;
                       const bool even = is_aligned(y, 4) && axes[2].out % N == 0;
                       if (even) return run_lanes<T, N, C>(op, axes, task, device, x, y, context);
                     }
                     return run_lanes<T, 1, 4>(op, axes, task, device, x, y, context);
                   });
}

Status fits_index_table(const Upsampling& op, const Problem& problem) {
  using Task = detail::IndexTableTask;
  const TensorDesc& x = problem.inputs[0];
  const TensorDesc& y = problem.outputs[0];
  if (op.mode != Interpolation::nearest || x.layout != Layout::linear || size_of(x.dtype) == 1) {
    return unsupported("supports only nearest interpolation of f32, f16 and bf16 in the linear layout");
  }
  const auto axes = sampled_axes(op, problem);
  if (y.storage_bytes() < Task::fewest_bytes || (axes[0].is_identity() && axes[1].is_identity())) {
    return unsupported("supports outputs of at least 4 MiB, if not only the length of the rows changes");
  }
  if (axes[2].out < Task::narrowest || axes[2].in > Task::longest_row) {
    return unsupported("supports output rows of at least 8 elements and input rows of at most 65536");
  }
  if (!std::all_of(axes.begin(), axes.end(), detail::ShortAxis::fits) ||
      std::max(x.storage_count(), y.storage_count()) >= UpsamplingTask::most_quick_items) {
    return unsupported("supports tensors of less than 2^31 elements, and positions of at most 31 bits");
  }
  return {};
}

/// Launches "index_table", which copies elements unchanged, so that T only has to have their size.
template <class T>
Status launch_index_table(detail::IndexTableTask& task, const DeviceTraits& device, const void* x, void* y,
                          const CudaContext& context) {
  using Task = detail::IndexTableTask;
  constexpr int turn = Task::threads * widest<T>;
  const std::int64_t fair =
      task.count / (std::int64_t{turn} * device.multiprocessors * Task::blocks_per_multiprocessor);
  task.piece = turn * static_cast<int>(std::clamp<std::int64_t>(fair, 1, Task::most_vectors));
  task.columns = std::min(task.piece, task.x.out);
  const Grid grid{.blocks = ceil_divide(task.count, task.piece),
                  .threads = Task::threads,
                  .cluster = 1,
                  .shared_bytes = task.shared_bytes()};
  return launch("Upsampling index_table", detail::index_table<T>, grid, context, static_cast<const T*>(x),
                static_cast<T*>(y), task, task.most_rows());
}

/// Runs "nearest" for a y whose rows are whole vectors and are repeated, so that each vector is computed once and
/// stored in several rows.
template <class T>
Status run_repeated_rows(UpsamplingTask& task, const DeviceTraits& device, const void* x, void* y,
                         const CudaContext& context) {
  return run_nearest<T, widest<T>, 1>(task, device, static_cast<const T*>(x), static_cast<T*>(y), context);
}

Status run_index_table(const Upsampling& op, const Problem& problem, const Buffers& buffers,
                       const CudaContext& context) {
  if (!is_aligned(buffers.outputs[0], 16)) return run_any(op, problem, buffers, context);
  const TensorDesc& y = problem.outputs[0];
  DeviceTraits device;
  if (Status status = current_device(device); !status.ok()) return status;
  const auto axes = sampled_axes(op, problem);
  const bool is_wide = size_of(y.dtype) == sizeof(float);
  const bool is_flat = axes[0].in == 1 && axes[0].out == 1;
  if (is_flat && axes[2].out * size_of(y.dtype) % 16 == 0 && axes[1].out >= 2 * axes[1].in) {
    UpsamplingTask task = make_task(op, problem);
    auto* run = is_wide ? run_repeated_rows<float> : run_repeated_rows<__half>;
    return run(task, device, buffers.inputs[0], buffers.outputs[0], context);
  }
  detail::IndexTableTask task{.z = detail::ShortAxis::make(axes[0]),
                              .y = detail::ShortAxis::make(axes[1]),
                              .x = detail::ShortAxis::make(axes[2]),
                              .count = static_cast<unsigned>(y.storage_count()),
                              .by_row = QuickDivision::by(axes[2].out),
                              .by_height = QuickDivision::by(axes[1].out),
                              .by_depth = QuickDivision::by(axes[0].out)};
  auto* launch_typed = is_wide ? launch_index_table<float> : launch_index_table<__half>;
  return launch_typed(task, device, buffers.inputs[0], buffers.outputs[0], context);
}

Status fits_gather(const Upsampling& op, const Problem& problem) {
  const auto axes = sampled_axes(op, problem);
  const TensorDesc& x = problem.inputs[0];
  const TensorDesc& y = problem.outputs[0];
  const std::int64_t planes = std::max<std::int64_t>(x.extents[0] * (x.layout == Layout::linear ? x.extents[1] : 1), 1);
  if (!detail::GatherTask::fits(axes, y.storage_count(), x.storage_count() / planes)) {
    return unsupported("supports outputs and channels of less than 2^31 elements, and positions of at most 31 bits");
  }
  return fits_packed(op, problem);
}

/// Launches "gather" with Many vectors per thread, or with Few if the GPU then runs all threads at once.
template <class T, int Taps, int Axes, int V, int Many, int Few>
Status launch_gather(const detail::GatherTask& task, const DeviceTraits& device, const T* x, T* y,
                     const CudaContext& context) {
  const auto run = [&](auto* kernel, int vectors) {
    const Grid grid = spread_grid(ceil_divide(task.count, vectors), device);
    return launch("Upsampling gather", kernel, grid, context, x, y, task);
  };
  if constexpr (Many > Few) {
    const std::int64_t held = std::int64_t{device.multiprocessors} * device.threads_per_multiprocessor;
    if (task.count > held * Few) return run(detail::gather<T, Taps, Axes, V, Many>, Many);
  }
  return run(detail::gather<T, Taps, Axes, V, Few>, Few);
}

/// Runs "gather" with vectors of V channels.
template <class T, int V>
Status run_gather_vectors(const Upsampling& op, const detail::GatherTask& task, const DeviceTraits& device, const T* x,
                          T* y, const CudaContext& context) {
  constexpr int of_word = V == 1 ? 4 / static_cast<int>(sizeof(T)) : 1;
  constexpr int N = V == 1 ? 4 : 1;
  constexpr int of_nearest = V == 1 ? widest<T> : 1;
  const bool is_deep = task.z.in > 1 || task.z.out > 1;
  // `are_rows` is true if each row of y is computed from the row of x with the same index.
  const unsigned part = task.y.start - task.y.by_divisor.divisor;
  const bool is_whole = part == 0 || (op.mode == Interpolation::nearest && part < task.y.by_divisor.divisor);
  const bool are_rows = !is_deep && task.y.in == task.y.out && task.y.step == task.y.by_divisor.divisor && is_whole;
  if (op.mode == Interpolation::nearest) {
    if constexpr (V == 1) {
      if (are_rows) return launch_gather<T, 1, 1, V, of_nearest, of_word>(task, device, x, y, context);
    }
    return launch_gather<T, 1, 2, V, of_nearest, of_word>(task, device, x, y, context);
  }
  if (op.mode == Interpolation::linear) {
    if (is_deep) return launch_gather<T, 2, 3, V, N, of_word>(task, device, x, y, context);
    if constexpr (V == 1) {
      if (are_rows) return launch_gather<T, 2, 1, V, N, of_word>(task, device, x, y, context);
    }
    return launch_gather<T, 2, 2, V, N, of_word>(task, device, x, y, context);
  }
  constexpr int of_cubic = of_word < 4 ? of_word : 1;
  return launch_gather<T, 4, 2, V, of_cubic, of_cubic>(task, device, x, y, context);
}

Status run_gather(const Upsampling& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
  constexpr std::size_t vector_bytes = 16;
  const TensorDesc& desc = problem.inputs[0];
  const bool is_linear = desc.layout == Layout::linear;
  const auto axes = sampled_axes(op, problem);
  const bool is_deep_cubic = op.mode == Interpolation::cubic && (axes[0].in > 1 || axes[0].out > 1);
  if (is_deep_cubic || !is_aligned(buffers.outputs[0], vector_bytes) ||
      (!is_linear && !is_aligned(buffers.inputs[0], vector_bytes))) {
    return run_any(op, problem, buffers, context);
  }
  return with_task(
      op, problem, buffers, [&]<class T>(UpsamplingTask& whole, const DeviceTraits& device, const T* x, T* y) {
        constexpr int V = sizeof(T) < 4 ? widest<T> : 1;
        const int vector = is_linear ? 1 : V;
        detail::GatherTask task{.z = detail::ShortAxis::make(axes[0]),
                                .y = detail::ShortAxis::make(axes[1]),
                                .x = detail::ShortAxis::make(axes[2]),
                                .count = static_cast<unsigned>(problem.outputs[0].storage_count() / vector),
                                .is_flat = axes[0].in == 1 && axes[0].out == 1,
                                .parts = whole.pitch / vector,
                                .in_row = static_cast<int>(whole.in_row),
                                .in_slice = static_cast<int>(whole.in_row * axes[1].in),
                                .in_volume = whole.in_row * axes[1].in * axes[0].in,
                                .by_parts = QuickDivision::by(whole.pitch / vector),
                                .by_row = QuickDivision::by(axes[2].out),
                                .by_height = QuickDivision::by(axes[1].out),
                                .by_depth = QuickDivision::by(axes[0].out),
                                .pitch = whole.pitch,
                                .blocks = static_cast<int>(whole.blocks),
                                .channels = whole.channels,
                                .cubic_a = op.cubic_a,
                                .ratio = whole.ratio};
        if constexpr (V > 1) {
          if (!is_linear) return run_gather_vectors<T, V>(op, task, device, x, y, context);
        }
        return run_gather_vectors<T, 1>(op, task, device, x, y, context);
      });
}

Status run_downsample_2x(const Upsampling& op, const Problem& problem, const Buffers& buffers,
                         const CudaContext& context) {
  using namespace detail;
  if (!is_aligned(buffers.inputs[0], 16) || !is_aligned(buffers.outputs[0], 16)) {
    return run_any(op, problem, buffers, context);
  }
  return with_task(op, problem, buffers,
                   [&]<class T>(UpsamplingTask& task, const DeviceTraits& device, const T* x, T* y) {
                     const std::int64_t groups = task.x.in / widest<T>;
                     task.distribute(groups, task.y.out, Policy::downsample_2x_rows);
                     const bool small = !task.fills(device);
                     if (small) task.distribute(groups, task.y.out, 1);
                     if (task.items >= UpsamplingTask::most_quick_items) {
                       return run_channels<T, 1>(op, task, device, x, y, context);
                     }
                     const Grid grid{ceil_divide(task.items, downsample_2x_threads), downsample_2x_threads};
                     return launch("Upsampling downsample_2x",
                                   small ? downsample_2x<T, 1> : downsample_2x<T, Policy::downsample_2x_rows>, grid,
                                   context, x, y, task);
                   });
}

/// Assigns `rows` rows of x to each thread or, if that leaves fewer than `enough` threads, single rows. Returns whether
/// it assigned single rows.
bool distribute_2x(UpsamplingTask& task, std::int64_t groups, int rows, std::int64_t enough) {
  task.distribute(groups, task.y.in, rows);
  const bool small = task.items < enough;
  if (small) task.distribute(groups, task.y.in, 1);
  return small;
}

template <class T, class Cells, int R, int Ahead, int Blocks>
Status run_cells(const Upsampling& op, const std::array<SampledAxis, 3>& axes, UpsamplingTask& task,
                 std::int64_t groups, const DeviceTraits& device, const T* x, T* y, const CudaContext& context) {
  using namespace detail;
  const std::int64_t at_once = std::int64_t{1} * device.multiprocessors * Blocks * upsample_2x_threads;
  const bool small = distribute_2x(task, groups, R, at_once);
  if (task.items >= UpsamplingTask::most_quick_items) return run_channels<T, 1>(op, task, device, x, y, context);
  const Upsample2xTask upsample_2x{task, Upsample2xWeights::make(axes[1], op.coordinate_mode),
                                   Upsample2xWeights::make(axes[2], op.coordinate_mode)};
  auto* kernel =
      small ? upsample_2x_linear<T, Cells, 1, Ahead, Blocks> : upsample_2x_linear<T, Cells, R, Ahead, Blocks>;
  return launch("Upsampling upsample_2x", kernel, {ceil_divide(task.items, upsample_2x_threads), upsample_2x_threads},
                context, x, y, upsample_2x);
}

template <class T>
Status run_upsample_2x_linear(const Upsampling& op, const std::array<SampledAxis, 3>& axes, bool is_linear,
                              UpsamplingTask& task, const DeviceTraits& device, const T* x, T* y,
                              const CudaContext& context) {
  using namespace detail;
  if constexpr (sizeof(T) < 4) {
    if (!is_linear) {
      constexpr int V = 8;
      task.parts = task.pitch / V;
      return run_cells<T, Upsample2xChannels<T, V>, cell_rows<T>, cell_ahead, cell_blocks<T>>(
          op, axes, task, std::int64_t{task.x.in} * task.parts, device, x, y, context);
    }
  }
  constexpr int K = upsample_2x_columns<T>;
  const std::int64_t groups = task.x.in / K;
  if (task.x.in % K == 0 && groups <= 32 && 32 % groups == 0) {
    return run_cells<T, Upsample2xColumns<T, K, true>, strip_rows<T>, strip_ahead, strip_blocks<T>>(
        op, axes, task, groups, device, x, y, context);
  }
  if constexpr (!std::is_same_v<T, std::int8_t>) {
    if (task.x.in % K != 0) {
      return run_cells<T, Upsample2xColumns<T, 1, false>, strip_rows<T>, strip_ahead, strip_blocks<T>>(
          op, axes, task, task.x.in, device, x, y, context);
    }
  }
  return run_cells<T, Upsample2xColumns<T, K, false>, strip_rows<T>, strip_ahead, strip_blocks<T>>(
      op, axes, task, groups, device, x, y, context);
}

template <class T, bool InVectors>
Status run_copied(const UpsamplingTask& task, const DeviceTraits& device, const T* x, T* y,
                  const CudaContext& context) {
  using namespace detail;
  CopiedTask copied{.task = task, .all_lines = task.planes * task.y.in};
  copied.line_units = static_cast<int>(task.in_row / (InVectors ? widest<T> : widest<T> / 2));
  copied.is_padded = InVectors && task.channels % task.pitch != 0;
  if (copied.line_units <= CopiedTask::most_units) {
    copied.units = copied.line_units;
    // Enough blocks for every multiprocessor, if there are enough lines.
    const auto fair = static_cast<int>(
        std::min<std::int64_t>(copied.all_lines / (4 * device.multiprocessors), CopiedTask::most_units));
    copied.lines = std::clamp(fair, 1, CopiedTask::most_units / copied.units);
  } else {
    copied.units = CopiedTask::most_units / task.parts * task.parts;
    copied.lines = 1;
  }
  const std::int64_t pieces = ceil_divide(copied.line_units, copied.units);
  copied.by_units = QuickDivision::by(copied.units);
  copied.by_pieces = QuickDivision::by(pieces);
  const Grid grid{.blocks = ceil_divide(copied.all_lines, copied.lines) * pieces,
                  .threads = CopiedTask::threads,
                  .cluster = 1,
                  .shared_bytes = copied.lines * copied.units * (InVectors ? 4 : 2) * 16};
  return launch("Upsampling copied", upsample_2x_bulk_copy<T, InVectors>, grid, context, x, y, copied);
}

template <class T>
Status run_upsample_2x_nearest(bool is_linear, UpsamplingTask& task, const DeviceTraits& device, const T* x, T* y,
                               const CudaContext& context) {
  using namespace detail;
  constexpr int K = upsample_2x_columns<T>;
  if constexpr (sizeof(T) < 4) {
    if (!is_linear) {
      task.parts = task.pitch / widest<T>;
      task.by_parts = QuickDivision::by(task.parts);
      if (task.parts <= CopiedTask::most_units && device.compute_major >= 9) {
        return run_copied<T, true>(task, device, x, y, context);
      }
      return run_nearest<T, 1, widest<T>>(task, device, x, y, context);
    }
  }
  const auto run = [&](auto* kernel) {
    return launch("Upsampling upsample_2x", kernel,
                  {ceil_divide(task.items, upsample_2x_nearest_threads), upsample_2x_nearest_threads}, context, x, y,
                  task);
  };
  const bool whole = task.x.in % K == 0;
  const std::int64_t enough = std::int64_t{1} * device.multiprocessors * device.threads_per_multiprocessor;
  const bool small = distribute_2x(task, whole ? task.x.in / K : task.x.in, Policy::nearest_rows, enough);
  if (whole) {
    if (small) return run(upsample_2x_nearest<T, K, 1>);
    if (device.compute_major >= 9) return run_copied<T, false>(task, device, x, y, context);
    return run(upsample_2x_nearest<T, K, Policy::nearest_rows>);
  }
  if constexpr (std::is_same_v<T, std::int8_t>) {
    return unsupported("Upsampling upsample_2x: supports i8 only with rows of a multiple of 8 elements");
  } else {
    return run(small ? upsample_2x_nearest<T, 1, 1> : upsample_2x_nearest<T, 1, Policy::nearest_rows>);
  }
}

Status run_upsample_2x(const Upsampling& op, const Problem& problem, const Buffers& buffers,
                       const CudaContext& context) {
  if (!is_aligned(buffers.inputs[0], 16) || !is_aligned(buffers.outputs[0], 16)) {
    return run_any(op, problem, buffers, context);
  }
  const bool is_linear = problem.inputs[0].layout == Layout::linear;
  return with_task(op, problem, buffers,
                   [&]<class T>(UpsamplingTask& task, const DeviceTraits& device, const T* x, T* y) {
                     if (op.mode == Interpolation::nearest) {
                       return run_upsample_2x_nearest<T>(is_linear, task, device, x, y, context);
                     }
                     const auto axes = sampled_axes(op, problem);
                     return run_upsample_2x_linear<T>(op, axes, is_linear, task, device, x, y, context);
                   });
}

}  // namespace

std::span<const Variant<Upsampling>> cuda_kernels(const Upsampling& /*op*/) {
  static constexpr std::array variants{Variant<Upsampling>{"upsample_2x", fits_upsample_2x, run_upsample_2x},
                                       Variant<Upsampling>{"downsample_2x", fits_downsample_2x, run_downsample_2x},
                                       Variant<Upsampling>{"line_buffer", fits_line_buffer, run_line_buffer},
                                       Variant<Upsampling>{"separable", fits_separable, run_separable},
                                       Variant<Upsampling>{"index_table", fits_index_table, run_index_table},
                                       Variant<Upsampling>{"gather", fits_gather, run_gather},
                                       Variant<Upsampling>{"scalar", fits_any, run_any}};
  return variants;
}

}  // namespace graft::ops

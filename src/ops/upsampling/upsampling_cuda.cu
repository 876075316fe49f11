// CUDA kernels of Upsampling: which of them takes which problem.
#include "ops/upsampling/doubled.cuh"
#include "ops/upsampling/interpolated.cuh"
#include "ops/upsampling/nearest.cuh"
#include "ops/upsampling/upsampling.hpp"

namespace graft {
namespace {

/// Rows of the output that a thread makes, if there are threads enough; rows of the input for "doubled".
struct Policy {
  static constexpr int rows = 8;
  static constexpr int doubled_rows = 4;
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
  if (op.mode == Interpolation::cubic || problem.inputs[0].layout != Layout::linear) {
    return unsupported("takes the linear layout, nearest or linear");
  }
  const auto axes = sampled_axes(op, problem);
  if (axes[0].out > 1 || !is_doubled(op, axes[1]) || !is_doubled(op, axes[2])) {
    return unsupported("takes two axes of twice the size");
  }
  if (problem.inputs[0].dtype == DType::i8 && axes[2].in % doubled_columns<std::int8_t> != 0) {
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

/// N columns to a thread, or V channels.
template <class T, int N, int V, int CubicN>
Status run_groups(const Upsampling& op, UpsamplingTask& task, const DeviceTraits& device, const T* x, T* y,
                  const CudaContext& context) {
  using namespace detail;
  const auto run = [&](auto* kernel, int columns, int threads) {
    task.parts = task.pitch / V;
    const std::int64_t groups = ceil_divide(task.x.out, columns) * task.parts;
    int rows = Policy::rows;
    do {
      task.distribute(groups, task.y.out, rows);
      rows /= 2;
    } while (rows > 0 && !task.fills(device));
    return launch("Upsampling", kernel, {ceil_divide(task.items, threads), threads}, context, x, y, task);
  };
  switch (op.mode) {
    case Interpolation::nearest: return run(nearest<T, N, V>, N, nearest_threads);
    case Interpolation::linear: {
      constexpr int columns = N > 8 ? 8 : N;
      return run(interpolated<T, 2, columns, V>, columns, interpolated_threads);
    }
    case Interpolation::cubic: return run(interpolated<T, 4, CubicN, V>, CubicN, interpolated_threads);
  }
  return {};
}

Status run_any(const Upsampling& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
  return with_task(op, problem, buffers, [&]<class T>(UpsamplingTask& task, const DeviceTraits& device, const T* x, T* y) {
    return run_groups<T, 1, 1, 1>(op, task, device, x, y, context);
  });
}

Status run_vectors(const Upsampling& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
  constexpr std::size_t vector_bytes = 16;
  const Layout layout = problem.inputs[0].layout;
  const std::int64_t width = problem.outputs[0].extents[problem.outputs[0].extents.rank() - 1];
  return with_task(op, problem, buffers, [&]<class T>(UpsamplingTask& task, const DeviceTraits& device, const T* x, T* y) {
    const bool aligned = is_aligned(y, vector_bytes) && (layout == Layout::linear || is_aligned(x, vector_bytes));
    constexpr int cubic_columns = widest<T> < 4 ? widest<T> : 4;
    if (layout == Layout::linear && aligned && width % widest<T> == 0) {
      return run_groups<T, widest<T>, 1, cubic_columns>(op, task, device, x, y, context);
    }
    constexpr int narrow = sizeof(T) == 1 ? 4 : 2;
    if (layout == Layout::linear && aligned && width % narrow == 0) {
      return run_groups<T, narrow, 1, narrow>(op, task, device, x, y, context);
    }
    if constexpr (sizeof(T) < 4) {
      if (layout != Layout::linear && aligned) return run_groups<T, 1, widest<T>, 1>(op, task, device, x, y, context);
    }
    return run_groups<T, 1, 1, 1>(op, task, device, x, y, context);
  });
}

Status run_doubled(const Upsampling& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
  using namespace detail;
  if (!is_aligned(buffers.inputs[0], 8) || !is_aligned(buffers.outputs[0], 16)) {
    return run_vectors(op, problem, buffers, context);
  }
  return with_task(op, problem, buffers, [&]<class T>(UpsamplingTask& task, const DeviceTraits& device, const T* x, T* y) {
    const auto axes = sampled_axes(op, problem);
    const DoubledWeights along_y = DoubledWeights::make(axes[1], op.coordinate_mode);
    const DoubledWeights along_x = DoubledWeights::make(axes[2], op.coordinate_mode);
    const auto run = [&]<int K>(std::integral_constant<int, K>) {
      constexpr int R = Policy::doubled_rows;
      task.distribute(task.x.in / K, task.y.in, R);
      const bool small = !task.fills(device);
      if (small) task.distribute(task.x.in / K, task.y.in, 1);
      const Grid grid{ceil_divide(task.items, doubled_threads), doubled_threads};
      if (op.mode == Interpolation::nearest) {
        auto* kernel = small ? doubled_nearest<T, K, 1> : doubled_nearest<T, K, R>;
        return launch("Upsampling doubled", kernel, grid, context, x, y, task);
      }
      auto* kernel = small ? doubled_linear<T, K, 1> : doubled_linear<T, K, R>;
      return launch("Upsampling doubled", kernel, grid, context, x, y, task, along_y, along_x);
    };
    if constexpr (!std::is_same_v<T, std::int8_t>) {
      if (task.x.in % doubled_columns<T> != 0) return run(std::integral_constant<int, 1>{});
    }
    return run(std::integral_constant<int, doubled_columns<T>>{});
  });
}

}  // namespace

std::span<const Variant<Upsampling>> cuda_kernels(const Upsampling& /*op*/) {
  static constexpr std::array variants{Variant<Upsampling>{"doubled", fits_doubled, run_doubled},
                                       Variant<Upsampling>{"vectors", fits_packed, run_vectors},
                                       Variant<Upsampling>{"scalar", fits_any, run_any}};
  return variants;
}

}  // namespace graft

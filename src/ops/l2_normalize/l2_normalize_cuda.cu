// CUDA kernels of L2Normalize: which of them takes which problem.
#include "ops/l2_normalize/columns.cuh"
#include "ops/l2_normalize/l2_normalize.hpp"
#include "ops/l2_normalize/rows.cuh"
#include "ops/l2_normalize/strided.cuh"
#include "ops/reduction.hpp"

namespace graft {
namespace {

constexpr std::size_t vector_bytes = 16;

/// A problem as every variant sees it.
struct Task {
  const TensorDesc& desc;
  ReductionPlan plan;
  Normalizer normalizer;
  DeviceTraits device;
  bool aligned = true;

  /// The elements of one access, as far as the sizes tell: as many as fill 128 bits, or one.
  template <class T>
  [[nodiscard]] bool in_vectors() const {
    const Extents& inner = inner_is_kept(plan) ? plan.kept_extents : plan.reduced_extents;
    return aligned && inner.rank() > 0 && inner[inner.rank() - 1] % widest<T> == 0;
  }
};

Status make_task(const L2Normalize& op, const Problem& problem, ReductionPlan& plan) {
  return plan_reduction(problem.inputs[0].extents, op.axes, plan);
}

Status wants_layout(const Problem& problem, Layout layout) {
  const Layout found = problem.inputs[0].layout;
  if (found == layout) return {};
  return unsupported("takes " + std::string(to_string(layout)) + ", found " + std::string(to_string(found)));
}

/// Calls `f(task, x, y)` with typed addresses, unless the tensor is empty.
template <class F>
Status with_task(const L2Normalize& op, const Problem& problem, const Buffers& buffers, F&& f) {
  Task task{.desc = problem.inputs[0],
            .plan = {},
            .normalizer = {{op.epsilon, op.epsilon_mode}, op.x_scale, op.y_scale},
            .device = {},
            .aligned = is_aligned(buffers.inputs[0], vector_bytes) && is_aligned(buffers.outputs[0], vector_bytes)};
  if (Status status = make_task(op, problem, task.plan); !status.ok()) return status;
  if (task.desc.extents.element_count() == 0) return {};
  if (Status status = current_device(task.device); !status.ok()) return status;
  return dispatch_device(task.desc.dtype, [&](auto element) {
    using T = decltype(element);
    return f(task, static_cast<const T*>(buffers.inputs[0]), static_cast<T*>(buffers.outputs[0]));
  });
}

/// Takes any linear tensor. Where there are too few vectors to give every multiprocessor some, blocks share them.
template <class T>
Status run_in_two_passes(const Task& task, const T* x, T* y, bool may_split, void* workspace,
                         const CudaContext& context) {
  constexpr std::int64_t blocks_per_multiprocessor = 4;
  const auto run = [&]<int N>(std::integral_constant<int, N>) {
    const bool inner_kept = inner_is_kept(task.plan);
    const std::int64_t tiles = inner_kept ? ceil_divide(task.plan.kept_count, 32 * N) : task.plan.kept_count;
    // A block's share of a vector is worth two turns of its threads.
    const std::int64_t turn = inner_kept ? 16 : 512 * N;
    const std::int64_t wanted = ceil_divide(task.device.multiprocessors * blocks_per_multiprocessor, tiles);
    const std::int64_t room = L2Normalize::split_workspace / sizeof(float) / task.plan.kept_count;
    const std::int64_t splits = std::min({wanted, room, ceil_divide(task.plan.reduced_count, 2 * turn)});
    return run_strided<T, N>(x, y, task.plan, task.normalizer, may_split ? static_cast<int>(splits) : 1,
                             static_cast<float*>(workspace), context);
  };
  if (task.in_vectors<T>()) return run(std::integral_constant<int, widest<T>>{});
  return run(std::integral_constant<int, 1>{});
}

// rows: the reduced axes are the innermost ones.

Status rows_fits(const L2Normalize& op, const Problem& problem) {
  if (Status status = wants_layout(problem, Layout::linear); !status.ok()) return status;
  ReductionPlan plan;
  if (Status status = make_task(op, problem, plan); !status.ok()) return status;
  if (plan.reduced_extents.rank() != 1 || plan.reduced_strides[0] != 1) {
    return unsupported("takes a norm over the innermost axes");
  }
  const std::int64_t width = vector_bytes / size_of(problem.inputs[0].dtype);
  const std::int64_t longest = rows_capacity * (plan.reduced_count % width == 0 ? width : 1);
  if (plan.reduced_count <= longest) return {};
  return unsupported("takes up to " + std::to_string(longest) + " elements, found " +
                     std::to_string(plan.reduced_count));
}

Status rows_run(const L2Normalize& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
  return with_task(op, problem, buffers, [&]<class T>(const Task& task, const T* x, T* y) {
    const std::int64_t most = task.device.has_clusters() ? rows_capacity : rows_capacity_of_block;
    if (task.plan.reduced_count > most * (task.in_vectors<T>() ? widest<T> : 1)) {
      return run_in_two_passes(task, x, y, true, buffers.workspace, context);
    }
    const int length = static_cast<int>(task.plan.reduced_count);
    const Rows rows{.count = task.plan.kept_count, .length = length, .pitch = length};
    if (task.in_vectors<T>()) return run_rows<T, widest<T>>(x, y, rows, task.normalizer, task.device, context);
    return run_rows<T, 1>(x, y, rows, task.normalizer, task.device, context);
  });
}

// columns: one reduced axis, and the kept ones inside it in one piece.

Status columns_fits(const L2Normalize& op, const Problem& problem) {
  if (Status status = wants_layout(problem, Layout::linear); !status.ok()) return status;
  ReductionPlan plan;
  if (Status status = make_task(op, problem, plan); !status.ok()) return status;
  if (!inner_is_kept(plan) || plan.reduced_extents.rank() > 1) {
    return unsupported("takes a norm over neighbouring axes with others inside");
  }
  return dispatch_device(problem.inputs[0].dtype, [&](auto element) -> Status {
    using T = decltype(element);
    const std::int64_t inner = plan.kept_extents[plan.kept_extents.rank() - 1];
    const int longest = inner % widest<T> == 0 ? columns_capacity<T, widest<T>> : columns_capacity<T, 1>;
    if (plan.reduced_count <= longest) return {};
    return unsupported("takes up to " + std::to_string(longest) + " elements, found " +
                       std::to_string(plan.reduced_count));
  });
}

Status columns_run(const L2Normalize& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
  return with_task(op, problem, buffers, [&]<class T>(const Task& task, const T* x, T* y) {
    // Sizes alone decide what fits; a misaligned tensor may then be too long.
    if (!task.in_vectors<T>() && task.plan.reduced_count > columns_capacity<T, 1>) {
      return run_in_two_passes(task, x, y, true, buffers.workspace, context);
    }
    const int rank = task.plan.kept_extents.rank();
    const Columns columns{.outer = rank == 1 ? 1 : task.plan.kept_extents[0],
                          .inner = task.plan.kept_extents[rank - 1],
                          .reduced = static_cast<int>(task.plan.reduced_count)};
    if (task.in_vectors<T>()) return run_columns<T, widest<T>>(x, y, columns, task.normalizer, task.device, context);
    return run_columns<T, 1>(x, y, columns, task.normalizer, task.device, context);
  });
}

// hwc8: pixels are rows, padded.

Status hwc8_fits(const L2Normalize& /*op*/, const Problem& problem) {
  if (Status status = wants_layout(problem, Layout::hwc8); !status.ok()) return status;
  const std::int64_t longest = std::int64_t{rows_capacity} * channels_per_vector(Layout::hwc8);
  if (problem.inputs[0].extents[1] <= longest) return {};
  return unsupported("takes up to " + std::to_string(longest) + " channels");
}

Status hwc8_run(const L2Normalize& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
  return with_task(op, problem, buffers, [&]<class T>(const Task& task, const T* x, T* y) -> Status {
    if constexpr (sizeof(T) == 2) {
      if (!task.aligned) return invalid_argument("L2Normalize: hwc8 tensors must lie at multiples of 16 bytes");
      const Extents& extents = task.desc.extents;
      const int channels = static_cast<int>(extents[1]);
      if (!task.device.has_clusters() && channels > rows_capacity_of_block * 8) {
        return unsupported("L2Normalize: this GPU takes up to " + std::to_string(rows_capacity_of_block * 8) +
                           " channels in hwc8");
      }
      const Rows rows{.count = extents.element_count() / channels, .length = channels, .pitch = (channels + 7) / 8 * 8};
      if (rows.pitch == rows.length) return run_rows<T, 8>(x, y, rows, task.normalizer, task.device, context);
      return run_rows<T, 8, true>(x, y, rows, task.normalizer, task.device, context);
    } else {
      return unsupported("hwc8 is a layout of 16-bit types");
    }
  });
}

// chw32: vectors of 32 channels lie beside each other, pixel by pixel.

Status chw32_fits(const L2Normalize& /*op*/, const Problem& problem) {
  if (Status status = wants_layout(problem, Layout::chw32); !status.ok()) return status;
  // Half of what columns of i8 take: a pixel's vector is two threads wide.
  const std::int64_t longest = columns_capacity<std::int8_t, 16> / 2 * channels_per_vector(Layout::chw32);
  if (problem.inputs[0].extents[1] <= longest) return {};
  return unsupported("takes up to " + std::to_string(longest) + " channels");
}

Status chw32_run(const L2Normalize& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
  return with_task(op, problem, buffers, [&]<class T>(const Task& task, const T* x, T* y) -> Status {
    if constexpr (std::is_same_v<T, std::int8_t>) {
      if (!task.aligned) return invalid_argument("L2Normalize: chw32 tensors must lie at multiples of 16 bytes");
      const Extents& extents = task.desc.extents;
      const int channels = static_cast<int>(extents[1]);
      const Columns columns{.outer = extents[0],
                            .inner = extents.element_count() / extents[0] / channels * 32,
                            .reduced = (channels + 31) / 32,
                            .channels = channels};
      return run_columns<T, 16, true>(x, y, columns, task.normalizer, task.device, context);
    } else {
      return unsupported("chw32 is a layout of i8");
    }
  });
}

// split: few vectors, too few for a block or for 32 of them to each take one, so several blocks share them in two
// launches.

Status split_fits(const L2Normalize& op, const Problem& problem) {
  constexpr std::int64_t most_tiles = 1024;
  constexpr std::int64_t least_elements = 512;
  if (Status status = wants_layout(problem, Layout::linear); !status.ok()) return status;
  ReductionPlan plan;
  if (Status status = make_task(op, problem, plan); !status.ok()) return status;
  const std::int64_t most_vectors = std::min<std::int64_t>(most_tiles * (inner_is_kept(plan) ? 32 : 1),
                                                           L2Normalize::split_workspace / sizeof(float) / 2);
  if (plan.kept_count <= most_vectors && plan.reduced_count >= least_elements) return {};
  return unsupported("takes up to " + std::to_string(most_vectors) + " vectors of at least " +
                     std::to_string(least_elements) + " elements");
}

Status split_run(const L2Normalize& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
  return with_task(op, problem, buffers, [&]<class T>(const Task& task, const T* x, T* y) {
    return run_in_two_passes(task, x, y, true, buffers.workspace, context);
  });
}

Status strided_fits(const L2Normalize& /*op*/, const Problem& problem) { return wants_layout(problem, Layout::linear); }

Status strided_run(const L2Normalize& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
  return with_task(op, problem, buffers, [&]<class T>(const Task& task, const T* x, T* y) {
    return run_in_two_passes(task, x, y, false, nullptr, context);
  });
}

}  // namespace

std::span<const Variant<L2Normalize>> cuda_kernels(const L2Normalize& /*op*/) {
  static constexpr std::array variants{
      Variant<L2Normalize>{"rows", rows_fits, rows_run},    Variant<L2Normalize>{"columns", columns_fits, columns_run},
      Variant<L2Normalize>{"hwc8", hwc8_fits, hwc8_run},    Variant<L2Normalize>{"chw32", chw32_fits, chw32_run},
      Variant<L2Normalize>{"split", split_fits, split_run}, Variant<L2Normalize>{"strided", strided_fits, strided_run}};
  return variants;
}

}  // namespace graft

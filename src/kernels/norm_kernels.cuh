// The CUDA kernels of every operator that divides by a Euclidean norm: which of them takes which problem.
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "graft/define_operator.hpp"
#include "kernels/norm_columns.cuh"
#include "kernels/norm_long.cuh"
#include "kernels/norm_rows.cuh"
#include "kernels/norm_strided.cuh"
#include "kernels/row_vectors.cuh"
#include "ops/reduction.hpp"

namespace graft {
namespace detail {

/// Traits say what an operator's definition means:
///   Op, the definition; it has split_workspace
///   std::span<const std::int64_t> axes(const Op&, const Problem&)
///   Normalizer normalizer(const Op&)
///   NoWeights or ChannelWeights weights(const Op&, const Problem&, const Buffers&)
template <class Traits>
struct NormKernels {
  using Op = typename Traits::Op;
  using Weights = decltype(Traits::weights(std::declval<const Op&>(), std::declval<const Problem&>(),
                                           std::declval<const Buffers&>()));
  static constexpr std::size_t vector_bytes = 16;
  static constexpr const char* what = Op::name;

  /// A problem as every variant sees it.
  struct Task {
    const TensorDesc& desc;
    ReductionPlan plan;
    Normalizer normalizer;
    Weights weights;
    DeviceTraits device;
    bool aligned = true;

    /// Calls `f` with the elements of one access as a constant: as many as fill 128 bits, or `Narrow`, or one.
    template <class T, int Narrow = widest<T>, class F>
    [[nodiscard]] Status with_width(F&& f) const {
      const std::int64_t inner = aligned ? innermost(plan) : 1;
      if (inner % widest<T> == 0) return f(std::integral_constant<int, widest<T>>{});
      if constexpr (Narrow < widest<T>) {
        if (inner % Narrow == 0) return f(std::integral_constant<int, Narrow>{});
      }
      return f(std::integral_constant<int, 1>{});
    }
  };

  /// What accesses narrower than 128 bits hold.
  template <class T>
  static constexpr int narrow_of_columns = sizeof(T) == 2 ? 2 : 4;

  static int vector_width(const Problem& problem) {
    return static_cast<int>(vector_bytes / size_of(problem.inputs[0].dtype));
  }
  /// The longest row that the GPU holds.
  static std::int64_t most_vectors(const Task& task) {
    return task.device.has_clusters() ? rows_capacity : rows_capacity_of_block;
  }

  static std::int64_t innermost(const ReductionPlan& plan) {
    const Extents& inner = inner_is_kept(plan) ? plan.kept_extents : plan.reduced_extents;
    return inner.rank() > 0 ? inner[inner.rank() - 1] : 1;
  }

  static Status make_plan(const Op& op, const Problem& problem, ReductionPlan& plan) {
    return plan_reduction(problem.inputs[0].extents, Traits::axes(op, problem), plan);
  }

  static Status wants_layout(const Problem& problem, Layout layout) {
    const Layout found = problem.inputs[0].layout;
    if (found == layout) return {};
    return unsupported("takes " + std::string(to_string(layout)) + ", found " + std::string(to_string(found)));
  }

  /// Calls `f(task, x, y)` with typed addresses, unless the tensor is empty.
  template <class F>
  static Status with_task(const Op& op, const Problem& problem, const Buffers& buffers, F&& f) {
    Task task{.desc = problem.inputs[0],
              .plan = {},
              .normalizer = Traits::normalizer(op),
              .weights = Traits::weights(op, problem, buffers),
              .device = {},
              .aligned = is_aligned(buffers.inputs[0], vector_bytes) && is_aligned(buffers.outputs[0], vector_bytes)};
    if (Status status = make_plan(op, problem, task.plan); !status.ok()) return status;
    if (task.desc.extents.element_count() == 0) return {};
    if (Status status = current_device(task.device); !status.ok()) return status;
    return dispatch_device(task.desc.dtype, [&](auto element) {
      using T = decltype(element);
      return f(task, static_cast<const T*>(buffers.inputs[0]), static_cast<T*>(buffers.outputs[0]));
    });
  }

  /// Takes any linear tensor. Where there are too few vectors to give every multiprocessor some, blocks share them.
  template <class T>
  static Status run_in_two_passes(const Task& task, const T* x, T* y, bool may_split, void* workspace,
                                  const CudaContext& context) {
    constexpr std::int64_t blocks_per_multiprocessor = 4;
    return task.template with_width<T>([&]<int N>(std::integral_constant<int, N>) {
      const bool inner_kept = inner_is_kept(task.plan);
      const std::int64_t tiles = inner_kept ? ceil_divide(task.plan.kept_count, 32 * N) : task.plan.kept_count;
      // A block's share of a vector is worth two turns of its threads.
      const std::int64_t turn = inner_kept ? 16 : 512 * N;
      const std::int64_t wanted = ceil_divide(task.device.multiprocessors * blocks_per_multiprocessor, tiles);
      const std::int64_t room = Op::split_workspace / sizeof(float) / task.plan.kept_count;
      const std::int64_t splits = std::min({wanted, room, ceil_divide(task.plan.reduced_count, 2 * turn)});
      return run_strided<T, N>(what, x, y, task.plan, task.normalizer, task.weights,
                               may_split ? static_cast<int>(splits) : 1, static_cast<float*>(workspace), context);
    });
  }

  // rows: the reduced axes are the innermost ones.

  static Status rows_fits(const Op& op, const Problem& problem) {
    if (Status status = wants_layout(problem, Layout::linear); !status.ok()) return status;
    ReductionPlan plan;
    if (Status status = make_plan(op, problem, plan); !status.ok()) return status;
    if (plan.reduced_extents.rank() != 1 || plan.reduced_strides[0] != 1) {
      return unsupported("takes a norm over the innermost axes");
    }
    const std::int64_t vectors = row_vectors(plan.reduced_count, vector_width(problem));
    if (vectors <= rows_capacity) return {};
    return unsupported("takes up to " + std::to_string(rows_capacity) + " vectors of 16 bytes, found " +
                       std::to_string(vectors));
  }

  static Status rows_run(const Op& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
    return with_task(op, problem, buffers, [&]<class T>(const Task& task, const T* x, T* y) {
      // What fits is decided without the addresses and the GPU.
      if (!task.aligned || row_vectors(task.plan.reduced_count, widest<T>) > most_vectors(task)) {
        return run_in_two_passes(task, x, y, true, buffers.workspace, context);
      }
      const int length = static_cast<int>(task.plan.reduced_count);
      const Rows rows{.count = task.plan.kept_count, .length = length, .pitch = length};
      auto* run = length % widest<T> == 0 ? run_rows<T, widest<T>, RowForm::whole, Weights>
                                          : run_rows<T, widest<T>, RowForm::shifted, Weights>;
      return run(what, x, y, rows, task.normalizer, task.weights, task.device, context);
    });
  }

  // pieces: the innermost axis is reduced and so is one further out, so that a vector is rows at a stride.

  static Status pieces_fits(const Op& op, const Problem& problem) {
    if (Status status = wants_layout(problem, Layout::linear); !status.ok()) return status;
    ReductionPlan plan;
    if (Status status = make_plan(op, problem, plan); !status.ok()) return status;
    if (plan.reduced_extents.rank() != 2 || plan.reduced_strides[1] != 1) {
      return unsupported("takes a norm over two groups of neighbouring axes, the inner one innermost");
    }
    const std::int64_t vectors = plan.reduced_extents[0] * row_vectors(plan.reduced_extents[1], vector_width(problem));
    if (vectors <= rows_capacity) return {};
    return unsupported("takes up to " + std::to_string(rows_capacity) + " vectors of 16 bytes, found " +
                       std::to_string(vectors));
  }

  static Status pieces_run(const Op& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
    return with_task(op, problem, buffers, [&]<class T>(const Task& task, const T* x, T* y) {
      constexpr int N = widest<T>;
      const ReductionPlan& plan = task.plan;
      const int piece = static_cast<int>(plan.reduced_extents[1]);
      const auto of_piece = static_cast<int>(row_vectors(piece, N));
      if (!task.aligned || plan.reduced_extents[0] * of_piece > most_vectors(task)) {
        return run_in_two_passes(task, x, y, true, buffers.workspace, context);
      }
      const RowsInPieces rows{.count = plan.kept_count,
                              .all = task.desc.extents.element_count(),
                              .length = static_cast<int>(plan.reduced_count),
                              .piece = piece,
                              .vectors_of_piece = of_piece,
                              .by_vectors = Divisor(of_piece),
                              .stride = plan.reduced_strides[0],
                              .kept = StridedLoop::make(plan.kept_extents, plan.kept_strides)};
      auto* run = piece % N == 0 ? run_rows_by_blocks<T, N, RowForm::whole, RowsInPieces, Weights>
                                 : run_rows_by_blocks<T, N, RowForm::shifted, RowsInPieces, Weights>;
      return run(what, x, y, rows, task.normalizer, task.weights, task.device, context);
    });
  }

  // columns: one reduced axis, and the kept ones inside it in one piece.

  static Status columns_fits(const Op& op, const Problem& problem) {
    if (Status status = wants_layout(problem, Layout::linear); !status.ok()) return status;
    ReductionPlan plan;
    if (Status status = make_plan(op, problem, plan); !status.ok()) return status;
    if (!inner_is_kept(plan) || plan.reduced_extents.rank() > 1) {
      return unsupported("takes a norm over neighbouring axes with others inside");
    }
    return dispatch_device(problem.inputs[0].dtype, [&](auto element) -> Status {
      using T = decltype(element);
      const std::int64_t inner = innermost(plan);
      constexpr int narrow = narrow_of_columns<T>;
      const int longest = inner % widest<T> == 0 ? columns_capacity<T, widest<T>>
                          : inner % narrow == 0  ? columns_capacity<T, narrow>
                                                 : columns_capacity<T, 1>;
      if (plan.reduced_count <= longest) return {};
      return unsupported("takes up to " + std::to_string(longest) + " elements, found " +
                         std::to_string(plan.reduced_count));
    });
  }

  static Columns columns_of(const ReductionPlan& plan) {
    const int rank = plan.kept_extents.rank();
    return {.outer = rank == 1 ? 1 : plan.kept_extents[0],
            .inner = plan.kept_extents[rank - 1],
            .reduced = static_cast<int>(plan.reduced_count)};
  }

  static Status columns_run(const Op& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
    return with_task(op, problem, buffers, [&]<class T>(const Task& task, const T* x, T* y) {
      return task.template with_width<T, narrow_of_columns<T>>([&]<int N>(std::integral_constant<int, N>) {
        // Sizes alone decide what fits; a misaligned tensor may then be too long.
        if (task.plan.reduced_count > columns_capacity<T, N>) {
          return run_in_two_passes(task, x, y, true, buffers.workspace, context);
        }
        return run_columns<T, N>(what, x, y, columns_of(task.plan), task.normalizer, task.weights, task.device,
                                 context);
      });
    });
  }

  // hwc8: pixels are rows, padded.

  static Status hwc8_fits(const Op& /*op*/, const Problem& problem) {
    if (Status status = wants_layout(problem, Layout::hwc8); !status.ok()) return status;
    const std::int64_t longest = std::int64_t{rows_capacity} * channels_per_vector(Layout::hwc8);
    if (problem.inputs[0].extents[1] <= longest) return {};
    return unsupported("takes up to " + std::to_string(longest) + " channels");
  }

  static Status hwc8_run(const Op& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
    return with_task(op, problem, buffers, [&]<class T>(const Task& task, const T* x, T* y) -> Status {
      if constexpr (sizeof(T) == 2) {
        if (!task.aligned) {
          return invalid_argument(std::string(what) + ": hwc8 tensors must lie at multiples of 16 bytes");
        }
        const Extents& extents = task.desc.extents;
        const int channels = static_cast<int>(extents[1]);
        if (!task.device.has_clusters() && channels > rows_capacity_of_block * 8) {
          return unsupported(std::string(what) + ": this GPU takes up to " +
                             std::to_string(rows_capacity_of_block * 8) + " channels in hwc8");
        }
        const Rows rows{
            .count = extents.element_count() / channels, .length = channels, .pitch = (channels + 7) / 8 * 8};
        auto* run = rows.pitch == rows.length ? run_rows<T, 8, RowForm::whole, Weights>
                                              : run_rows<T, 8, RowForm::padded, Weights>;
        return run(what, x, y, rows, task.normalizer, task.weights, task.device, context);
      } else {
        return unsupported("hwc8 is a layout of 16-bit types");
      }
    });
  }

  // chw32: vectors of 32 channels lie beside each other, pixel by pixel.

  static Status chw32_fits(const Op& /*op*/, const Problem& problem) {
    if (Status status = wants_layout(problem, Layout::chw32); !status.ok()) return status;
    // Half of what columns of i8 take: a pixel's vector is two threads wide.
    const std::int64_t longest = columns_capacity<std::int8_t, 16> / 2 * channels_per_vector(Layout::chw32);
    if (problem.inputs[0].extents[1] <= longest) return {};
    return unsupported("takes up to " + std::to_string(longest) + " channels");
  }

  static Status chw32_run(const Op& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
    return with_task(op, problem, buffers, [&]<class T>(const Task& task, const T* x, T* y) -> Status {
      if constexpr (std::is_same_v<T, std::int8_t>) {
        if (!task.aligned) {
          return invalid_argument(std::string(what) + ": chw32 tensors must lie at multiples of 16 bytes");
        }
        const Extents& extents = task.desc.extents;
        const int channels = static_cast<int>(extents[1]);
        const Columns columns{.outer = extents[0],
                              .inner = extents.element_count() / extents[0] / channels * 32,
                              .reduced = (channels + 31) / 32,
                              .channels = channels};
        return run_columns<T, 16, true>(what, x, y, columns, task.normalizer, task.weights, task.device, context);
      } else {
        return unsupported("chw32 is a layout of i8");
      }
    });
  }

  // long: rows that no cluster holds, summed and scaled in one launch.

  static Status long_fits(const Op& op, const Problem& problem) {
    if (Status status = wants_layout(problem, Layout::linear); !status.ok()) return status;
    ReductionPlan plan;
    if (Status status = make_plan(op, problem, plan); !status.ok()) return status;
    const std::int64_t most = two_steps_most_rows<float>(Op::split_workspace);
    const std::int64_t longest = rows_capacity * vector_width(problem);
    if (plan.reduced_extents.rank() == 1 && plan.reduced_strides[0] == 1 && plan.kept_count <= most &&
        row_vectors(plan.reduced_count, vector_width(problem)) > rows_capacity) {
      return {};
    }
    return unsupported("takes a norm over the innermost axes of up to " + std::to_string(most) + " vectors of about " +
                       std::to_string(longest) + " elements and more");
  }

  static Status long_run(const Op& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
    return with_task(op, problem, buffers, [&]<class T>(const Task& task, const T* x, T* y) {
      if (!task.aligned) return run_in_two_passes(task, x, y, true, buffers.workspace, context);
      auto* run = task.plan.reduced_count % widest<T> == 0 ? run_long_rows<T, widest<T>, RowForm::whole, Weights>
                                                           : run_long_rows<T, widest<T>, RowForm::shifted, Weights>;
      return run(what, x, y, task.plan.kept_count, task.plan.reduced_count, task.normalizer, task.weights,
                 buffers.workspace, Op::split_workspace, task.device, context);
    });
  }

  // split: few vectors, too few for a block or for 32 of them to each take one, so several blocks share them in two
  // launches.

  static Status split_fits(const Op& op, const Problem& problem) {
    constexpr std::int64_t most_tiles = 1024;
    constexpr std::int64_t least_elements = 512;
    if (Status status = wants_layout(problem, Layout::linear); !status.ok()) return status;
    ReductionPlan plan;
    if (Status status = make_plan(op, problem, plan); !status.ok()) return status;
    const std::int64_t most_vectors =
        std::min<std::int64_t>(most_tiles * (inner_is_kept(plan) ? 32 : 1), Op::split_workspace / sizeof(float) / 2);
    if (plan.kept_count <= most_vectors && plan.reduced_count >= least_elements) return {};
    return unsupported("takes up to " + std::to_string(most_vectors) + " vectors of at least " +
                       std::to_string(least_elements) + " elements");
  }

  static Status split_run(const Op& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
    return with_task(op, problem, buffers, [&]<class T>(const Task& task, const T* x, T* y) {
      return run_in_two_passes(task, x, y, true, buffers.workspace, context);
    });
  }

  static Status strided_fits(const Op& /*op*/, const Problem& problem) { return wants_layout(problem, Layout::linear); }

  static Status strided_run(const Op& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
    return with_task(op, problem, buffers, [&]<class T>(const Task& task, const T* x, T* y) {
      return run_in_two_passes(task, x, y, false, nullptr, context);
    });
  }
};

}  // namespace detail

/// See NormKernels for what Traits are.
template <class Traits>
[[nodiscard]] std::span<const Variant<typename Traits::Op>> norm_kernels() {
  using Kernels = detail::NormKernels<Traits>;
  using OneVariant = Variant<typename Traits::Op>;
  static constexpr std::array variants{OneVariant{"rows", Kernels::rows_fits, Kernels::rows_run},
                                       OneVariant{"pieces", Kernels::pieces_fits, Kernels::pieces_run},
                                       OneVariant{"columns", Kernels::columns_fits, Kernels::columns_run},
                                       OneVariant{"hwc8", Kernels::hwc8_fits, Kernels::hwc8_run},
                                       OneVariant{"chw32", Kernels::chw32_fits, Kernels::chw32_run},
                                       OneVariant{"long", Kernels::long_fits, Kernels::long_run},
                                       OneVariant{"split", Kernels::split_fits, Kernels::split_run},
                                       OneVariant{"strided", Kernels::strided_fits, Kernels::strided_run}};
  return variants;
}

}  // namespace graft

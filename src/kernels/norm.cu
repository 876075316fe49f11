// The kernels of Euclidean norms, compiled once for all operators that divide by one.
#include <algorithm>

#include "kernels/norm.cuh"
#include "kernels/norm_columns.cuh"
#include "kernels/norm_long.cuh"
#include "kernels/norm_packed_rows.cuh"
#include "kernels/norm_rows.cuh"
#include "kernels/norm_shifted_columns.cuh"
#include "kernels/norm_strided.cuh"
#include "kernels/row_vectors.cuh"

namespace graft {
namespace {

/// Calls `f(x, y)` with typed addresses.
template <class F>
Status with_types(const NormTask& task, F&& f) {
  return dispatch_device(task.desc.dtype, [&](auto element) {
    using T = decltype(element);
    return f(static_cast<const T*>(task.x), static_cast<T*>(task.y));
  });
}

/// Calls `f` with the elements of one access as a constant: as many as fill 128 bits, or `Narrow`, or one.
template <class T, int Narrow = widest<T>, class F>
Status with_width(const NormTask& task, F&& f) {
  const std::int64_t inner = task.aligned ? innermost(task.plan) : 1;
  if (inner % widest<T> == 0) return f(std::integral_constant<int, widest<T>>{});
  if constexpr (Narrow < widest<T>) {
    if (inner % Narrow == 0) return f(std::integral_constant<int, Narrow>{});
  }
  return f(std::integral_constant<int, 1>{});
}

/// The longest row that the GPU holds, in vectors.
std::int64_t most_vectors(const NormTask& task) {
  return task.device.has_clusters() ? rows_capacity : rows_capacity_of_block;
}

/// Takes any linear tensor. Where there are too few vectors to give every multiprocessor some, blocks share them.
template <class T>
Status run_in_two_passes(const NormTask& task, const T* x, T* y, bool may_split, const CudaContext& context) {
  constexpr std::int64_t blocks_per_multiprocessor = 4;
  return with_width<T>(task, [&]<int N>(std::integral_constant<int, N>) {
    const bool inner_kept = inner_is_kept(task.plan);
    const std::int64_t tiles = inner_kept ? ceil_divide(task.plan.kept_count, 32 * N) : task.plan.kept_count;
    // A block's share of a vector is worth two turns of its threads.
    const std::int64_t turn = inner_kept ? 16 : 512 * N;
    const std::int64_t wanted = ceil_divide(task.device.multiprocessors * blocks_per_multiprocessor, tiles);
    const std::int64_t room = task.workspace_bytes / sizeof(float) / task.plan.kept_count;
    const std::int64_t splits = std::min({wanted, room, ceil_divide(task.plan.reduced_count, 2 * turn)});
    return run_strided<T, N>(task.what, x, y, task.plan, task.normalizer, task.weights,
                             may_split ? static_cast<int>(splits) : 1, static_cast<float*>(task.workspace), context);
  });
}

Columns columns_of(const ops::ReductionPlan& plan) {
  const int rank = plan.kept_extents.rank();
  return {.outer = rank == 1 ? 1 : plan.kept_extents[0],
          .inner = plan.kept_extents[rank - 1],
          .reduced = static_cast<int>(plan.reduced_count)};
}

}  // namespace

Status run_norm_rows(const NormTask& task, const CudaContext& context) {
  return with_types(task, [&]<class T>(const T* x, T* y) {
    // What fits is decided without the addresses and the GPU.
    if (!task.aligned || row_vectors(task.plan.reduced_count, widest<T>) > most_vectors(task)) {
      return run_in_two_passes(task, x, y, true, context);
    }
    const int length = static_cast<int>(task.plan.reduced_count);
    const Rows rows{.count = task.plan.kept_count, .length = length, .pitch = length};
    if constexpr (!std::is_same_v<T, std::int8_t>) {
      if (packs_rows<T>(rows.count, length)) {
        return run_packed_rows<T>(task.what, x, y, rows.count, length, task.normalizer, task.weights, context);
      }
    }
    auto* run =
        length % widest<T> == 0 ? run_rows<T, widest<T>, RowForm::whole> : run_rows<T, widest<T>, RowForm::shifted>;
    return run(task.what, x, y, rows, task.normalizer, task.weights, task.device, context);
  });
}

Status run_norm_pieces(const NormTask& task, const CudaContext& context) {
  return with_types(task, [&]<class T>(const T* x, T* y) {
    constexpr int N = widest<T>;
    const ops::ReductionPlan& plan = task.plan;
    const int piece = static_cast<int>(plan.reduced_extents[1]);
    const auto of_piece = static_cast<int>(row_vectors(piece, N));
    if (!task.aligned || plan.reduced_extents[0] * of_piece > most_vectors(task)) {
      return run_in_two_passes(task, x, y, true, context);
    }
    const RowsInPieces rows{.count = plan.kept_count,
                            .all = task.desc.extents.element_count(),
                            .length = static_cast<int>(plan.reduced_count),
                            .piece = piece,
                            .vectors_of_piece = of_piece,
                            .by_vectors = Divisor(of_piece),
                            .stride = plan.reduced_strides[0],
                            .kept = StridedLoop::make(plan.kept_extents, plan.kept_strides)};
    auto* run = piece % N == 0 ? kernels::run_rows_by_blocks<T, N, RowForm::whole, RowsInPieces>
                               : kernels::run_rows_by_blocks<T, N, RowForm::shifted, RowsInPieces>;
    return run(task.what, x, y, rows, task.normalizer, task.weights, task.device, context);
  });
}

Status run_norm_columns(const NormTask& task, const CudaContext& context) {
  return with_types(task, [&]<class T>(const T* x, T* y) {
    const Columns columns = columns_of(task.plan);
    if constexpr (!std::is_same_v<T, std::int8_t>) {
      if (task.aligned && takes_shifted_columns<T>(columns, task.device)) {
        return run_shifted_columns<T>(task.what, x, y, columns, task.normalizer, task.weights, task.device, context);
      }
    }
    return with_width<T, narrow_of_columns<T>>(task, [&]<int N>(std::integral_constant<int, N>) {
      // Sizes alone decide what fits; a misaligned tensor may then be too long.
      if (columns.reduced > columns_capacity<T, N>) return run_in_two_passes(task, x, y, true, context);
      return run_columns<T, N>(task.what, x, y, columns, task.normalizer, task.weights, task.device, context);
    });
  });
}

Status run_norm_hwc8(const NormTask& task, const CudaContext& context) {
  return with_types(task, [&]<class T>(const T* x, T* y) -> Status {
    if constexpr (sizeof(T) == 2) {
      if (!task.aligned) {
        return invalid_argument(std::string(task.what) + ": hwc8 tensors must lie at multiples of 16 bytes");
      }
      const Extents& extents = task.desc.extents;
      const int channels = static_cast<int>(extents[1]);
      if (!task.device.has_clusters() && channels > rows_capacity_of_block * 8) {
        return unsupported(std::string(task.what) + ": this GPU takes up to " +
                           std::to_string(rows_capacity_of_block * 8) + " channels in hwc8");
      }
      const Rows rows{.count = extents.element_count() / channels, .length = channels, .pitch = (channels + 7) / 8 * 8};
      auto* run = rows.pitch == rows.length ? run_rows<T, 8, RowForm::whole> : run_rows<T, 8, RowForm::padded>;
      return run(task.what, x, y, rows, task.normalizer, task.weights, task.device, context);
    } else {
      return unsupported("hwc8 is a layout of 16-bit types");
    }
  });
}

Status run_norm_chw32(const NormTask& task, const CudaContext& context) {
  return with_types(task, [&]<class T>(const T* x, T* y) -> Status {
    if constexpr (std::is_same_v<T, std::int8_t>) {
      if (!task.aligned) {
        return invalid_argument(std::string(task.what) + ": chw32 tensors must lie at multiples of 16 bytes");
      }
      const Extents& extents = task.desc.extents;
      const int channels = static_cast<int>(extents[1]);
      const Columns columns{.outer = extents[0],
                            .inner = extents.element_count() / extents[0] / channels * 32,
                            .reduced = (channels + 31) / 32,
                            .channels = channels};
      return run_columns<T, 16, true>(task.what, x, y, columns, task.normalizer, task.weights, task.device, context);
    } else {
      return unsupported("chw32 is a layout of i8");
    }
  });
}

Status run_norm_long(const NormTask& task, const CudaContext& context) {
  return with_types(task, [&]<class T>(const T* x, T* y) {
    if (!task.aligned) return run_in_two_passes(task, x, y, true, context);
    auto* run = task.plan.reduced_count % widest<T> == 0 ? run_long_rows<T, widest<T>, RowForm::whole>
                                                         : run_long_rows<T, widest<T>, RowForm::shifted>;
    return run(task.what, x, y, task.plan.kept_count, task.plan.reduced_count, task.normalizer, task.weights,
               task.workspace, task.workspace_bytes, task.device, context);
  });
}

Status run_norm_split(const NormTask& task, const CudaContext& context) {
  return with_types(task, [&]<class T>(const T* x, T* y) { return run_in_two_passes(task, x, y, true, context); });
}

Status run_norm_strided(const NormTask& task, const CudaContext& context) {
  return with_types(task, [&]<class T>(const T* x, T* y) { return run_in_two_passes(task, x, y, false, context); });
}

}  // namespace graft

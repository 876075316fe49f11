// Norms of rows: contiguous rows, rows in pieces, and the channels of hwc8.
#include "kernels/norm_dispatch.cuh"
#include "kernels/norm_packed_rows.cuh"
#include "kernels/norm_rows.cuh"
#include "kernels/row_vectors.cuh"

namespace graft {
namespace {

/// Returns the length of the longest row, in vectors, that a block or a cluster of the GPU holds in registers.
std::int64_t most_vectors(const NormTask& task) {
  return task.device.has_clusters() ? rows_capacity : rows_capacity_of_block;
}

}  // namespace

Status run_norm_rows(const NormTask& task, const CudaContext& context) {
  return kernels::with_types(task, [&]<class T>(const T* x, T* y) {
    // rows_fits() depends neither on the addresses nor on the GPU.
    if (!task.aligned || row_vectors(task.plan.reduced_count, widest<T>) > most_vectors(task)) {
      return run_norm_split(task, context);
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
  return kernels::with_types(task, [&]<class T>(const T* x, T* y) {
    constexpr int N = widest<T>;
    const ReductionPlan& plan = task.plan;
    const int piece = static_cast<int>(plan.reduced_extents[1]);
    const auto of_piece = static_cast<int>(row_vectors(piece, N));
    const bool is_weighted = task.weights.values != nullptr && !RowsInPieces::may_have_weights;
    if (!task.aligned || is_weighted || plan.reduced_extents[0] * of_piece > most_vectors(task)) {
      return run_norm_split(task, context);
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

Status run_norm_hwc8(const NormTask& task, const CudaContext& context) {
  return kernels::with_types(task, [&]<class T>(const T* x, T* y) -> Status {
    if constexpr (sizeof(T) == 2) {
      if (!task.aligned) {
        return invalid_argument(std::string(task.what) + ": the addresses of hwc8 tensors must be multiples of 16");
      }
      const Extents& extents = task.desc.extents;
      const int channels = static_cast<int>(extents[1]);
      if (!task.device.has_clusters() && channels > rows_capacity_of_block * 8) {
        return unsupported(std::string(task.what) + ": this GPU supports up to " +
                           std::to_string(rows_capacity_of_block * 8) + " channels in hwc8");
      }
      const Rows rows{.count = extents.element_count() / channels, .length = channels, .pitch = (channels + 7) / 8 * 8};
      auto* run = rows.pitch == rows.length ? run_rows<T, 8, RowForm::whole> : run_rows<T, 8, RowForm::padded>;
      return run(task.what, x, y, rows, task.normalizer, task.weights, task.device, context);
    } else {
      return unsupported("supports hwc8 only with f16 and bf16");
    }
  });
}

}  // namespace graft

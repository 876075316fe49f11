// Norms of columns (the innermost dimension is kept), and of the channels of chw32.
#include "kernels/norm_columns.cuh"
#include "kernels/norm_dispatch.cuh"
#include "kernels/norm_shifted_columns.cuh"

namespace graft {
namespace {

Columns columns_of(const ReductionPlan& plan) {
  const int rank = plan.kept_extents.rank();
  return {.outer = rank == 1 ? 1 : plan.kept_extents[0],
          .inner = plan.kept_extents[rank - 1],
          .reduced = static_cast<int>(plan.reduced_count)};
}

}  // namespace

Status run_norm_columns(const NormTask& task, const CudaContext& context) {
  return kernels::with_types(task, [&]<class T>(const T* x, T* y) {
    const Columns columns = columns_of(task.plan);
    if constexpr (!std::is_same_v<T, std::int8_t>) {
      if (task.aligned && takes_shifted_columns<T>(columns, task.device)) {
        return run_shifted_columns<T>(task.what, x, y, columns, task.normalizer, task.weights, task.device, context);
      }
    }
    return kernels::with_width<T, narrow_of_columns<T>>(task, [&]<int N>(std::integral_constant<int, N>) {
      // columns_fits() checks only sizes. A tensor that is not aligned may be too long for narrow accesses.
      if (columns.reduced > columns_capacity<T, N>) return run_norm_split(task, context);
      return run_columns<T, N>(task.what, x, y, columns, task.normalizer, task.weights, task.device, context);
    });
  });
}

Status run_norm_chw32(const NormTask& task, const CudaContext& context) {
  return kernels::with_types(task, [&]<class T>(const T* x, T* y) -> Status {
    if constexpr (std::is_same_v<T, std::int8_t>) {
      if (!task.aligned) {
        return invalid_argument(std::string(task.what) + ": the addresses of chw32 tensors must be multiples of 16");
      }
      const Extents& extents = task.desc.extents;
      const int channels = static_cast<int>(extents[1]);
      const Columns columns{.outer = extents[0],
                            .inner = extents.element_count() / extents[0] / channels * 32,
                            .reduced = (channels + 31) / 32,
                            .channels = channels};
      return run_columns<T, 16, true>(task.what, x, y, columns, task.normalizer, task.weights, task.device, context);
    } else {
      return unsupported("supports chw32 only with i8");
    }
  });
}

}  // namespace graft

// Norms of any linear tensor, which is read twice, and of rows that are too long for a cluster.
#include <algorithm>

#include "kernels/norm_dispatch.cuh"
#include "kernels/norm_long.cuh"
#include "kernels/norm_strided.cuh"

namespace graft {
namespace {

/// Normalizes any linear tensor. If there are too few vectors for all multiprocessors and `may_split` is true, several
/// blocks share each vector.
template <class T>
Status run_in_two_passes(const NormTask& task, const T* x, T* y, bool may_split, const CudaContext& context) {
  constexpr std::int64_t blocks_per_multiprocessor = 4;
  return kernels::with_width<T>(task, [&]<int N>(std::integral_constant<int, N>) {
    const bool inner_kept = inner_is_kept(task.plan);
    const std::int64_t tiles = inner_kept ? ceil_divide(task.plan.kept_count, 32 * N) : task.plan.kept_count;
    // Each block's share of a vector is at least about two iterations of its threads.
    const std::int64_t turn = inner_kept ? 16 : 512 * N;
    const std::int64_t wanted = ceil_divide(task.device.multiprocessors * blocks_per_multiprocessor, tiles);
    const std::int64_t room = task.workspace_bytes / sizeof(float) / task.plan.kept_count;
    const std::int64_t splits = std::min({wanted, room, ceil_divide(task.plan.reduced_count, 2 * turn)});
    return run_strided<T, N>(task.what, x, y, task.plan, task.normalizer, task.weights,
                             may_split ? static_cast<int>(splits) : 1, static_cast<float*>(task.workspace), context);
  });
}

}  // namespace

Status run_norm_split(const NormTask& task, const CudaContext& context) {
  return kernels::with_types(task,
                             [&]<class T>(const T* x, T* y) { return run_in_two_passes(task, x, y, true, context); });
}

Status run_norm_strided(const NormTask& task, const CudaContext& context) {
  return kernels::with_types(task,
                             [&]<class T>(const T* x, T* y) { return run_in_two_passes(task, x, y, false, context); });
}

Status run_norm_long(const NormTask& task, const CudaContext& context) {
  return kernels::with_types(task, [&]<class T>(const T* x, T* y) {
    if (!task.aligned) return run_in_two_passes(task, x, y, true, context);
    auto* run = task.plan.reduced_count % widest<T> == 0 ? run_long_rows<T, widest<T>, RowForm::whole>
                                                         : run_long_rows<T, widest<T>, RowForm::shifted>;
    return run(task.what, x, y, task.plan.kept_count, task.plan.reduced_count, task.normalizer, task.weights,
               task.workspace, task.workspace_bytes, task.device, context);
  });
}

}  // namespace graft

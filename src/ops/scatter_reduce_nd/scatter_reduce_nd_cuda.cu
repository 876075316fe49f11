// CUDA kernels of ScatterReduceND: the row that each update selects.
#include "kernels/scatter.cuh"
#include "ops/scatter_reduce_nd/scatter_reduce_nd.hpp"

namespace graft::ops {
namespace {

/// A function object that returns the row which an update is reduced into, or -1 if an index is out of range.
template <class Index>
struct SliceRow {
  const Index* indices;
  int depth;
  std::int64_t sizes[Extents::max_rank];

  [[nodiscard]] __device__ std::int64_t operator()(int update) const {
    std::int64_t row = 0;
    for (int axis = 0; axis < depth; ++axis) {
      const std::int64_t at = index_from_front(indices[std::int64_t{update} * depth + axis], sizes[axis]);
      if (at < 0) return -1;
      row = row * sizes[axis] + at;
    }
    return row;
  }
};

Status scatter_slices(const ScatterReduceND& op, const Problem& problem, const Buffers& buffers,
                      const CudaContext& context, bool by_atomics) {
  const Extents& data = problem.inputs[0].extents;
  const Extents& index_extents = problem.inputs[1].extents;
  const ScatterTask task(op, problem, buffers);
  return dispatch_indices(problem.inputs[1].dtype, buffers.inputs[1], [&](const auto* indices) {
    SliceRow<std::remove_cvref_t<decltype(*indices)>> row_of{
        indices, static_cast<int>(index_extents[index_extents.rank() - 1]), {}};
    for (int axis = 0; axis < row_of.depth; ++axis) row_of.sizes[axis] = data[axis];
    return scatter(task, by_atomics, row_of, context);
  });
}

}  // namespace

std::span<const Variant<ScatterReduceND>> cuda_kernels(const ScatterReduceND& /*op*/) {
  return scatter_variants<ScatterReduceND, scatter_slices>();
}

}  // namespace graft::ops

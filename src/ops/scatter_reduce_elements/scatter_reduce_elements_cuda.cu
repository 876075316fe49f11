// CUDA kernels of ScatterReduceElements: where each update goes.
#include "kernels/scatter.cuh"
#include "kernels/strides.cuh"
#include "ops/scatter_reduce_elements/scatter_reduce_elements.hpp"

namespace graft::ops {
namespace {

/// From an element of the indices to that of the data.
template <class Index>
struct ElementRow {
  const Index* indices;
  int rank;
  int axis;
  std::int64_t sizes[Extents::max_rank];  ///< Of the data.
  std::int64_t index_sizes[Extents::max_rank];

  [[nodiscard]] __device__ std::int64_t operator()(int update) const {
    const std::int64_t along_axis = index_from_front(indices[update], sizes[axis]);
    if (along_axis < 0) return -1;
    std::int64_t rest = update;
    std::int64_t row = 0;
    std::int64_t stride = 1;
    for (int i = rank - 1; i >= 0; --i) {
      const std::int64_t quotient = divide(rest, index_sizes[i]);
      row += (i == axis ? along_axis : rest - quotient * index_sizes[i]) * stride;
      stride *= sizes[i];
      rest = quotient;
    }
    return row;
  }
};

Status scatter_elements(const ScatterReduceElements& op, const Problem& problem, const Buffers& buffers,
                        const CudaContext& context, bool by_atomics) {
  const Extents& data = problem.inputs[0].extents;
  const ScatterTask task(op, problem, buffers);
  return dispatch_indices(problem.inputs[1].dtype, buffers.inputs[1], [&](const auto* indices) {
    ElementRow<std::remove_cvref_t<decltype(*indices)>> row_of{indices, data.rank(), op.axis_of(data.rank()), {}, {}};
    for (int i = 0; i < row_of.rank; ++i) {
      row_of.sizes[i] = data[i];
      row_of.index_sizes[i] = problem.inputs[1].extents[i];
    }
    return scatter(task, by_atomics, row_of, context);
  });
}

}  // namespace

std::span<const Variant<ScatterReduceElements>> cuda_kernels(const ScatterReduceElements& /*op*/) {
  return scatter_variants<ScatterReduceElements, scatter_elements>();
}

}  // namespace graft::ops

// CUDA kernels of ScatterReduceElements: the element of the data that each update selects.
#include "kernels/divisor.cuh"
#include "kernels/scatter.cuh"
#include "ops/scatter_reduce_elements/scatter_reduce_elements.hpp"

namespace graft::ops {
namespace {

/// A function object that returns the index of the element of the data which an update is reduced into, or -1 if the
/// index is out of range.
template <class Index>
struct ElementRow {
  const Index* indices;
  int rank;
  int axis;
  std::int64_t axis_size;                     ///< The size of the data along the axis.
  std::int64_t strides[Extents::max_rank];    ///< The strides of the data in elements.
  Divisor by_index_sizes[Extents::max_rank];  ///< The divisors are the sizes of the indices; the first one is not used.

  [[nodiscard]] __device__ std::int64_t operator()(int update) const {
    const std::int64_t along_axis = index_from_front(indices[update], axis_size);
    if (along_axis < 0) return -1;
    int rest = update;
    std::int64_t row = 0;
    for (int i = rank - 1; i >= 0; --i) {
      const int quotient = i == 0 ? 0 : by_index_sizes[i].quotient(rest);
      const int place = i == 0 ? rest : by_index_sizes[i].remainder(rest);
      row += (i == axis ? along_axis : place) * strides[i];
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
    ElementRow<std::remove_cvref_t<decltype(*indices)>> row_of{indices, data.rank(), op.axis_of(data.rank()),
                                                               0,       {},          {}};
    row_of.axis_size = data[row_of.axis];
    std::int64_t stride = 1;
    for (int i = row_of.rank - 1; i >= 0; --i) {
      row_of.strides[i] = stride;
      stride *= data[i];
      const std::int64_t size = problem.inputs[1].extents[i];
      if (i > 0 && size > 0) row_of.by_index_sizes[i] = Divisor(static_cast<int>(size));
    }
    return scatter(task, by_atomics, row_of, context);
  });
}

}  // namespace

std::span<const Variant<ScatterReduceElements>> cuda_kernels(const ScatterReduceElements& /*op*/) {
  return scatter_variants<ScatterReduceElements, scatter_elements>();
}

}  // namespace graft::ops

// CUDA kernels of ScatterElements: where each update goes.
#include "kernels/scatter.cuh"
#include "kernels/strides.cuh"
#include "ops/scatter_elements/scatter_elements.hpp"

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

template <class Index>
Status scatter_elements(const ScatterElements& op, const Problem& problem, const Buffers& buffers,
                        const CudaContext& context, bool by_atomics) {
  const Extents& data = problem.inputs[0].extents;
  ElementRow<Index> row_of{static_cast<const Index*>(buffers.inputs[1]), data.rank(), op.axis_of(data.rank()), {}, {}};
  for (int i = 0; i < row_of.rank; ++i) {
    row_of.sizes[i] = data[i];
    row_of.index_sizes[i] = problem.inputs[1].extents[i];
  }
  const ScatterTask task{
      ScatterElements::name, op.reduction,      problem.inputs[0].dtype, ScatterElements::sizes(problem),
      buffers.inputs[0],     buffers.inputs[2], buffers.outputs[0],      static_cast<std::byte*>(buffers.workspace)};
  return scatter(task, by_atomics, row_of, context);
}

Status scatter_by_type(const ScatterElements& op, const Problem& problem, const Buffers& buffers,
                       const CudaContext& context, bool by_atomics) {
  const bool is_long = problem.inputs[1].dtype == DType::i64;
  return (is_long ? scatter_elements<std::int64_t> : scatter_elements<std::int32_t>)(op, problem, buffers, context,
                                                                                     by_atomics);
}

}  // namespace

std::span<const Variant<ScatterElements>> cuda_kernels(const ScatterElements& /*op*/) {
  return scatter_variants<ScatterElements, scatter_by_type>();
}

}  // namespace graft::ops

// Reference kernel of ScatterReduceElements, and the checks of its sizes.
#include <stdexcept>

#include "ops/scatter_reduce_elements/scatter_reduce_elements.hpp"
#include "ops/scatter_reference.hpp"

namespace graft::ops {

std::vector<Shape> ScatterReduceElements::infer_shapes(std::span<const Shape> inputs) const {
  const auto rank = static_cast<std::int64_t>(inputs[0].size());
  if (rank == 0) throw std::invalid_argument("`data` is a scalar; it must have 1 to 8 dimensions");
  if (axis < -rank || axis >= rank) {
    throw std::invalid_argument("axis is " + std::to_string(axis) + "; it must be between " + std::to_string(-rank) +
                                " and " + std::to_string(rank - 1));
  }
  return {inputs[0]};
}

Status ScatterReduceElements::check(const Problem& problem) const {
  const Extents& data = problem.inputs[0].extents;
  const Extents& indices = problem.inputs[1].extents;
  const Extents& updates = problem.inputs[2].extents;
  bool fits = indices.rank() == data.rank() && updates == indices;
  for (int i = 0; fits && i < data.rank(); ++i) fits = i == axis_of(data.rank()) || indices[i] <= data[i];
  if (fits) return {};
  return invalid_argument("ScatterReduceElements: data has shape " + to_string(data) + ", indices has " +
                          to_string(indices) + " and updates has " + to_string(updates) +
                          "; indices and updates must have the same shape, with the rank of data, and must not be "
                          "larger than data except along the axis");
}

Status run(const ScatterReduceElements& op, const Problem& problem, const Buffers& buffers,
           const CpuContext& /*context*/) {
  const Extents& data = problem.inputs[0].extents;
  const Extents& sizes = problem.inputs[1].extents;
  const int scattered = op.axis_of(data.rank());
  return dispatch_indices(problem.inputs[1].dtype, buffers.inputs[1], [&](const auto* indices) {
    return scatter_cpu(op.reduction, ScatterReduceElements::sizes(problem), problem.inputs[0].dtype, buffers,
                       [&](std::int64_t update) -> std::int64_t {
                         std::int64_t rest = update;
                         std::int64_t row = 0;
                         std::int64_t stride = 1;
                         for (int axis = data.rank() - 1; axis >= 0; --axis) {
                           std::int64_t at = rest % sizes[axis];
                           if (axis == scattered) at = index_from_front(indices[update], data[axis]);
                           if (at < 0) return -1;
                           row += at * stride;
                           stride *= data[axis];
                           rest /= sizes[axis];
                         }
                         return row;
                       });
  });
}

}  // namespace graft::ops

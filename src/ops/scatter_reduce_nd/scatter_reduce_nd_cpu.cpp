// Reference kernel of ScatterReduceND, and the checks of its sizes.
#include <algorithm>

#include "ops/scatter_reduce_nd/scatter_reduce_nd.hpp"
#include "ops/scatter_reference.hpp"

namespace graft::ops {
namespace {

/// Returns the number of indices that select a slice, the size of the last axis of the indices.
int depth_of(const Problem& problem) {
  const Extents& indices = problem.inputs[1].extents;
  return static_cast<int>(indices[indices.rank() - 1]);
}

}  // namespace

Status ScatterReduceND::check(const Problem& problem) {
  const Extents& data = problem.inputs[0].extents;
  const Extents& indices = problem.inputs[1].extents;
  const std::int64_t depth = indices[indices.rank() - 1];
  if (depth < 1 || depth > data.rank()) {
    return invalid_argument("ScatterReduceND: the last dimension of indices is " + std::to_string(depth) +
                            "; it must be between 1 and " + std::to_string(data.rank()) + ", the rank of data");
  }
  std::vector<std::int64_t> wanted(indices.begin(), indices.end() - 1);
  wanted.insert(wanted.end(), data.begin() + depth, data.end());
  const Extents& updates = problem.inputs[2].extents;
  if (std::equal(wanted.begin(), wanted.end(), updates.begin(), updates.end())) return {};
  return invalid_argument("ScatterReduceND: updates has shape " + to_string(updates) + " with data of " +
                          to_string(data) + " and indices of " + to_string(indices) +
                          "; it must have the shape of indices without its last dimension, followed by the dimensions "
                          "of data that indices does not index");
}

ScatterSizes ScatterReduceND::sizes(const Problem& problem) {
  const Extents& data = problem.inputs[0].extents;
  ScatterSizes sizes{.rows = 1, .slice = 1, .updates = 1};
  for (int axis = 0; axis < data.rank(); ++axis) (axis < depth_of(problem) ? sizes.rows : sizes.slice) *= data[axis];
  const Extents& indices = problem.inputs[1].extents;
  for (int axis = 0; axis + 1 < indices.rank(); ++axis) sizes.updates *= indices[axis];
  return sizes;
}

Status run(const ScatterReduceND& op, const Problem& problem, const Buffers& buffers, const CpuContext& /*context*/) {
  const Extents& data = problem.inputs[0].extents;
  const int depth = depth_of(problem);
  return dispatch_indices(problem.inputs[1].dtype, buffers.inputs[1], [&](const auto* indices) {
    return scatter_cpu(op.reduction, ScatterReduceND::sizes(problem), problem.inputs[0].dtype, buffers,
                       [&](std::int64_t update) -> std::int64_t {
                         std::int64_t row = 0;
                         for (int axis = 0; axis < depth; ++axis) {
                           const std::int64_t at = index_from_front(indices[update * depth + axis], data[axis]);
                           if (at < 0) return -1;
                           row = row * data[axis] + at;
                         }
                         return row;
                       });
  });
}

}  // namespace graft::ops

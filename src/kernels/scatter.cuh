// Scattering with a reduction on the GPU: the row of each update is found by a kernel of the operator's own; what
// follows is compiled once, in scatter.cu.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

#include "graft/define_operator.hpp"
#include "kernels/launch.cuh"
#include "ops/scatter.hpp"

namespace graft {

/// A problem as every kernel sees it.
struct ScatterTask {
  template <class Definition>
  ScatterTask(const Definition& op, const Problem& problem, const Buffers& buffers)
      : what(Definition::name),
        reduction(op.reduction),
        dtype(problem.inputs[0].dtype),
        sizes(Definition::sizes(problem)),
        data(buffers.inputs[0]),
        updates(buffers.inputs[2]),
        y(buffers.outputs[0]),
        workspace(static_cast<std::byte*>(buffers.workspace)) {}

  const char* what;
  ops::ScatterReduction reduction;
  DType dtype;
  ops::ScatterSizes sizes;
  const void* data;
  const void* updates;
  void* y;
  std::byte* workspace;

  [[nodiscard]] unsigned* targets(int side) const {
    return reinterpret_cast<unsigned*>(workspace + ops::ScatterPlan(sizes).targets[side]);
  }
  [[nodiscard]] int* order(int side) const {
    return reinterpret_cast<int*>(workspace + ops::ScatterPlan(sizes).order[side]);
  }
};

/// The task's targets hold the row of each update, of which those from `rows` on are left out; y holds the data.
[[nodiscard]] Status reduce_by_atomics(const ScatterTask& task, const CudaContext& context);
/// The same for reductions in the order of the updates, of which the task's order holds the numbers.
[[nodiscard]] Status reduce_in_order(const ScatterTask& task, const CudaContext& context);

/// Bytes that a kernel copies besides: one launch less, of the three of a small problem.
struct ScatterCopy {
  const std::byte* from;
  std::byte* to;
  std::int64_t bytes;
  std::int64_t vectors;  ///< Of 16 bytes; 0 where an address is not aligned.
};

/// `row_of` is called with the number of an update, and gives its row or -1.
template <class RowOf>
__global__ void find_targets(RowOf row_of, unsigned* targets, int* order, int updates, unsigned rows,
                             ScatterCopy copy) {
  const std::int64_t thread = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::int64_t threads = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t at = thread; at < copy.vectors; at += threads) {
    reinterpret_cast<uint4*>(copy.to)[at] = reinterpret_cast<const uint4*>(copy.from)[at];
  }
  for (std::int64_t at = copy.vectors * std::int64_t{sizeof(uint4)} + thread; at < copy.bytes; at += threads) {
    copy.to[at] = copy.from[at];
  }
  if (thread >= updates) return;
  const auto update = static_cast<int>(thread);
  const std::int64_t row = row_of(update);
  targets[update] = row < 0 ? rows : static_cast<unsigned>(row);
  order[update] = update;
}

template <class RowOf>
[[nodiscard]] Status scatter(const ScatterTask& task, bool by_atomics, const RowOf& row_of,
                             const CudaContext& context) {
  constexpr int threads = 256;
  constexpr int vector_bytes = sizeof(uint4);
  const ops::ScatterSizes& sizes = task.sizes;
  ScatterCopy copy{static_cast<const std::byte*>(task.data), static_cast<std::byte*>(task.y), 0, 0};
  if (by_atomics) {  // in order, y is written once, with the sums
    copy.bytes = sizes.rows * sizes.slice * static_cast<std::int64_t>(size_of(task.dtype));
    if (is_aligned(task.data, vector_bytes) && is_aligned(task.y, vector_bytes)) {
      copy.vectors = copy.bytes / vector_bytes;
    }
  }
  const std::int64_t work = std::max(sizes.updates, ceil_divide(copy.bytes, vector_bytes));
  if (Status found = launch(task.what, find_targets<RowOf>, {ceil_divide(work, threads), threads}, context, row_of,
                            task.targets(0), task.order(0), static_cast<int>(sizes.updates),
                            static_cast<unsigned>(sizes.rows), copy);
      !found.ok()) {
    return found;
  }
  return by_atomics ? reduce_by_atomics(task, context) : reduce_in_order(task, context);
}

/// Rows and updates are counted in 31 bits.
template <class Definition>
[[nodiscard]] Status fits_in_order(const Definition& /*op*/, const Problem& problem) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  const ops::ScatterSizes sizes = Definition::sizes(problem);
  if (sizes.rows <= most && sizes.updates <= most) return {};
  return unsupported(std::to_string(sizes.updates) + " updates of " + std::to_string(sizes.rows) +
                     " rows, allowed are 2147483647 of either");
}

/// Where the order does not matter, as of integers, or may be any, as of sums where it was said.
template <class Definition>
[[nodiscard]] Status fits_atomics(const Definition& op, const Problem& problem) {
  using enum ops::ScatterReduction;
  if (op.reduction == mul) return unsupported("there is no atomic multiplication");
  if (is_floating_point(problem.inputs[0].dtype)) {
    if (op.reduction != add) return unsupported("of floating-point numbers only sums are atomic");
    if (op.deterministic) return unsupported("a deterministic sum of floating-point numbers has an order");
  }
  return fits_in_order(op, problem);
}

/// Those of a definition for which `Run` calls scatter.
template <class Definition,
          Status (*Run)(const Definition&, const Problem&, const Buffers&, const CudaContext&, bool by_atomics)>
[[nodiscard]] std::span<const Variant<Definition>> scatter_variants() {
  static constexpr std::array variants{
      Variant<Definition>{"atomics", fits_atomics<Definition>,
                          [](const Definition& op, const Problem& problem, const Buffers& buffers,
                             const CudaContext& context) { return Run(op, problem, buffers, context, true); }},
      Variant<Definition>{"in_order", fits_in_order<Definition>,
                          [](const Definition& op, const Problem& problem, const Buffers& buffers,
                             const CudaContext& context) { return Run(op, problem, buffers, context, false); }}};
  return variants;
}

}  // namespace graft

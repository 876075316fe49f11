// A problem of scattering with a reduction, and the first step of those of its kernels that are atomic.
#pragma once

#include <cstddef>
#include <cstdint>

#include "graft/define_operator.hpp"
#include "kernels/launch.cuh"
#include "ops/scatter.hpp"

namespace graft {

inline constexpr int scatter_threads = 256;

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

/// What kernels that find extremes by atomics tell one another.
struct ExtremesState {
  unsigned has_order;  ///< 1 if there are numbers whose order matters: NaN, or zeros that may differ in their sign.
  unsigned begun;      ///< Parts of the work that blocks have taken, if the order matters;
  unsigned ended[ops::ExtremesPlan::state_words - 2];  ///< of each step, parts that are done.
};

/// Whether an extreme depends on when the number comes.
[[nodiscard]] __device__ inline bool has_order(float number) {
  return number != number || __float_as_uint(number) == 0x80000000U;
}

/// Makes y a copy of data by a kernel that the next one may overlap. With a state, looks for numbers whose order
/// matters.
[[nodiscard]] Status copy_data(const ScatterTask& task, ExtremesState* state, const CudaContext& context);

}  // namespace graft

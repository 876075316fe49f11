// The parameters of a scatter with a reduction, and the first step of its atomic kernels.
#pragma once

#include <cstddef>

#include "core/scatter.hpp"
#include "graft/operator/define_operator.hpp"
#include "kernels/launch.cuh"

namespace graft {

inline constexpr int scatter_threads = 256;

/// The parameters that every scatter kernel receives.
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
  ScatterReduction reduction;
  DType dtype;
  ScatterSizes sizes;
  const void* data;
  const void* updates;
  void* y;
  std::byte* workspace;

  [[nodiscard]] unsigned* targets(int side) const {
    return reinterpret_cast<unsigned*>(workspace + ScatterPlan(sizes).targets[side]);
  }
  [[nodiscard]] int* order(int side) const {
    return reinterpret_cast<int*>(workspace + ScatterPlan(sizes).order[side]);
  }
};

/// The state that the kernels for minima and maxima with atomics share.
struct ExtremesState {
  /// Set to 1 if there are elements whose order matters (NaN, or zeros that may differ in their sign), otherwise 0.
  unsigned has_order;
  unsigned begun;                                 ///< The number of parts that blocks have begun, if the order matters.
  unsigned ended[ExtremesPlan::state_words - 2];  ///< The number of parts of each step that are done.
};

/// Returns whether the minimum or maximum depends on the position of this number among the updates.
[[nodiscard]] __device__ inline bool has_order(float number) {
  return number != number || __float_as_uint(number) == 0x80000000U;
}

/// Copies data to y in a kernel that the next kernel may overlap. If `state` is not null, the kernel also sets its
/// has_order if there are elements whose order matters.
[[nodiscard]] Status copy_data(const ScatterTask& task, ExtremesState* state, const CudaContext& context);

}  // namespace graft

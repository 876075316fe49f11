// Euclidean norms on the GPU, for every operator that divides by a norm: the parameters of the kernels, and the
// functions that launch them. The kernels are compiled once, in norm_rows.cu, norm_columns.cu and norm_strided.cu.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/reduction.hpp"
#include "graft/operator/define_operator.hpp"
#include "kernels/launch.cuh"
#include "kernels/norm_strided.cuh"
#include "kernels/normalizer.cuh"

namespace graft {

/// The parameters that every kernel for norms receives.
struct NormTask {
  const char* what;
  const TensorDesc& desc;
  ReductionPlan plan;
  Normalizer normalizer;
  ChannelWeights weights;
  DeviceTraits device;
  bool aligned;  ///< Whether the addresses of x and y are multiples of 128 bits.
  const void* x;
  void* y;
  void* workspace;
  std::size_t workspace_bytes;
};

/// The number of elements in one access to columns that is narrower than 128 bits.
template <class T>
inline constexpr int narrow_of_columns = sizeof(T) == 2 ? 2 : 4;

/// Returns the extent of the innermost dimension, whether it is kept or reduced.
[[nodiscard]] inline std::int64_t innermost(const ReductionPlan& plan) {
  const Extents& inner = inner_is_kept(plan) ? plan.kept_extents : plan.reduced_extents;
  return inner.rank() > 0 ? inner[inner.rank() - 1] : 1;
}

// Computes norms of rows. norm_kernels.cuh lists the problems that this function and the following ones support.
[[nodiscard]] Status run_norm_rows(const NormTask& task, const CudaContext& context);
[[nodiscard]] Status run_norm_pieces(const NormTask& task, const CudaContext& context);
[[nodiscard]] Status run_norm_columns(const NormTask& task, const CudaContext& context);
[[nodiscard]] Status run_norm_hwc8(const NormTask& task, const CudaContext& context);
[[nodiscard]] Status run_norm_chw32(const NormTask& task, const CudaContext& context);
[[nodiscard]] Status run_norm_long(const NormTask& task, const CudaContext& context);
[[nodiscard]] Status run_norm_split(const NormTask& task, const CudaContext& context);
[[nodiscard]] Status run_norm_strided(const NormTask& task, const CudaContext& context);

}  // namespace graft

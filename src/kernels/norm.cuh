// Euclidean norms on the GPU, for every operator that divides by one: what its kernels are told, and how they are run.
// They are compiled once, in norm_rows.cu, norm_columns.cu and norm_strided.cu.
#pragma once

#include <cstddef>
#include <cstdint>

#include "graft/define_operator.hpp"
#include "kernels/launch.cuh"
#include "kernels/norm_strided.cuh"
#include "kernels/normalizer.cuh"
#include "ops/reduction.hpp"

namespace graft {

/// A problem as every kernel sees it.
struct NormTask {
  const char* what;
  const TensorDesc& desc;
  ops::ReductionPlan plan;
  Normalizer normalizer;
  ChannelWeights weights;
  DeviceTraits device;
  bool aligned;  ///< x and y to 128 bits.
  const void* x;
  void* y;
  void* workspace;
  std::size_t workspace_bytes;
};

/// What accesses of columns narrower than 128 bits hold.
template <class T>
inline constexpr int narrow_of_columns = sizeof(T) == 2 ? 2 : 4;

/// The extent of the innermost dimension, kept or reduced.
[[nodiscard]] inline std::int64_t innermost(const ops::ReductionPlan& plan) {
  const Extents& inner = inner_is_kept(plan) ? plan.kept_extents : plan.reduced_extents;
  return inner.rank() > 0 ? inner[inner.rank() - 1] : 1;
}

// norm_kernels.cuh says which takes what.
[[nodiscard]] Status run_norm_rows(const NormTask& task, const CudaContext& context);
[[nodiscard]] Status run_norm_pieces(const NormTask& task, const CudaContext& context);
[[nodiscard]] Status run_norm_columns(const NormTask& task, const CudaContext& context);
[[nodiscard]] Status run_norm_hwc8(const NormTask& task, const CudaContext& context);
[[nodiscard]] Status run_norm_chw32(const NormTask& task, const CudaContext& context);
[[nodiscard]] Status run_norm_long(const NormTask& task, const CudaContext& context);
[[nodiscard]] Status run_norm_split(const NormTask& task, const CudaContext& context);
[[nodiscard]] Status run_norm_strided(const NormTask& task, const CudaContext& context);

}  // namespace graft

// The CUDA variants of DeformableConvolution, each in a source of its own.
#pragma once

#include "ops/deformable_convolution/deformable_convolution.hpp"

namespace graft::ops {

/// Sampled into tiles for tensor cores.
[[nodiscard]] Status fits_deformable_tensor_core(const DeformableConvolution& op, const Problem& problem);
[[nodiscard]] Status run_deformable_tensor_core(const DeformableConvolution& op, const Problem& problem,
                                                const Buffers& buffers, const CudaContext& context);

/// Any problem, a thread for each result.
[[nodiscard]] Status run_deformable_direct(const DeformableConvolution& op, const Problem& problem,
                                           const Buffers& buffers, const CudaContext& context);

}  // namespace graft::ops

// The CUDA variants of DeformableConvolution, each in its own source.
#pragma once

#include "ops/deformable_convolution/deformable_convolution.hpp"

namespace graft::ops {

/// The variant that samples x into tiles for tensor cores.
[[nodiscard]] Status fits_deformable_tensor_core(const DeformableConvolution& op, const Problem& problem);
[[nodiscard]] Status run_deformable_tensor_core(const DeformableConvolution& op, const Problem& problem,
                                                const Buffers& buffers, const CudaContext& context);

/// The variant for any problem, with one thread per result.
[[nodiscard]] Status run_deformable_direct(const DeformableConvolution& op, const Problem& problem,
                                           const Buffers& buffers, const CudaContext& context);

}  // namespace graft::ops

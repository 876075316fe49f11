// The CUDA variants of DeformableConvolution, each in its own source.
#pragma once

#include "ops/deformable_convolution/deformable_convolution.hpp"

namespace graft::ops {

/// Returns ok if the variant for tensor cores supports the problem, otherwise unsupported. The variant samples x into
/// tiles in shared memory.
[[nodiscard]] Status fits_deformable_tensor_core(const DeformableConvolution& op, const Problem& problem);
[[nodiscard]] Status run_deformable_tensor_core(const DeformableConvolution& op, const Problem& problem,
                                                const Buffers& buffers, const CudaContext& context);

/// Runs the variant for any problem, with one thread per element of y.
[[nodiscard]] Status run_deformable_direct(const DeformableConvolution& op, const Problem& problem,
                                           const Buffers& buffers, const CudaContext& context);

}  // namespace graft::ops

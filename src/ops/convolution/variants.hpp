// The CUDA variants of Convolution, each in a file of its own.
#pragma once

#include "ops/convolution/convolution.hpp"

namespace graft {

/// f16, bf16 and i8, one or two spatial axes, groups of whole chunks of channels. tensor_core.cu
[[nodiscard]] Status tensor_core_fits(const Convolution& op, const Problem& problem);
[[nodiscard]] Status tensor_core_run(const Convolution& op, const Problem& problem, const Buffers& buffers,
                                     const CudaContext& context);

/// Any problem: one thread to an element of y. direct.cu
[[nodiscard]] Status direct_fits(const Convolution& op, const Problem& problem);
[[nodiscard]] Status direct_run(const Convolution& op, const Problem& problem, const Buffers& buffers,
                                const CudaContext& context);

}  // namespace graft

// The CUDA variants of Convolution, each in a file of its own.
#pragma once

#include "ops/convolution/convolution.hpp"

namespace graft {

/// Any problem: one thread to an element of y. direct.cu
[[nodiscard]] Status direct_fits(const Convolution& op, const Problem& problem);
[[nodiscard]] Status direct_run(const Convolution& op, const Problem& problem, const Buffers& buffers,
                                const CudaContext& context);

}  // namespace graft

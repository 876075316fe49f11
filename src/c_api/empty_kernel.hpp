// A kernel that does nothing: what a launch costs.
#pragma once

#include "graft/tensor.hpp"

namespace graft {

[[nodiscard]] Status run_empty_kernel(CUstream_st* stream);

}  // namespace graft

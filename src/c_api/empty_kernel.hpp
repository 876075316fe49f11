// A kernel that does nothing, for measuring the cost of a launch.
#pragma once

#include "graft/operator/tensor.hpp"

namespace graft {

[[nodiscard]] Status run_empty_kernel(CUstream_st* stream);

}  // namespace graft

// Defines the function by which `graft bench --operators` finds the timed cases of a library. Compiled into each
// operator library.
#include "graft/operator/registry.hpp"
#include "operator_library/timings.hpp"

const graft::ExportedTimings* graft_operator_timings() noexcept {
  try {
    static const graft::ExportedTimings exported {
      .timings = graft::ops::operator_timings().data(), .count = graft::ops::operator_timings().size(),
#if GRAFT_HAS_KERNELS
      .register_cuda_kernels = &graft::register_cuda_kernels
    };
#else
      .register_cuda_kernels = nullptr
    };
#endif
    return &exported;
  } catch (...) {  // `timings` of an operator threw, or memory is exhausted: the caller reports the null
    return nullptr;
  }
}

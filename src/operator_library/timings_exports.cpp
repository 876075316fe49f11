// The function by which `graft bench --operators` finds timed problems. Compiled into each library of operators.
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
  } catch (...) {  // timings that throw, or bad_alloc
    return nullptr;
  }
}

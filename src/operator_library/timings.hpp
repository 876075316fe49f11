// The interface of a library of operators for `graft bench`: one C function, `graft_operator_timings`.
#pragma once

#include <cstddef>
#include <vector>

#include "ops/operator_case.hpp"

namespace graft {

struct ExportedTimings {
  const ops::OperatorTimings* timings;
  std::size_t count;
  void (*register_cuda_kernels)();  ///< Registers the library's CUDA kernels; null in a library without kernels.
};

/// Returns the timings of all libraries that load_operator_library has loaded, in the order of loading. Registers the
/// CUDA kernels of their operators.
[[nodiscard]] std::vector<ops::OperatorTimings> library_timings();

}  // namespace graft

/// Returns the timings of this library, or null if they cannot be listed.
extern "C" __attribute__((visibility("default"))) const graft::ExportedTimings* graft_operator_timings() noexcept;

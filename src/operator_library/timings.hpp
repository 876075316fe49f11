// What a library of operators shows for `graft bench`: one C function, `graft_operator_timings`.
#pragma once

#include <cstddef>
#include <vector>

#include "ops/operator_case.hpp"

namespace graft {

struct ExportedTimings {
  const ops::OperatorTimings* timings;
  std::size_t count;
  void (*register_cuda_kernels)();  ///< Null in a library without kernels.
};

/// Those of all libraries that load_operator_library has loaded, in the order in which they were. Their operators have
/// their CUDA kernels afterwards.
[[nodiscard]] std::vector<ops::OperatorTimings> library_timings();

}  // namespace graft

/// Null if the timings cannot be listed.
extern "C" __attribute__((visibility("default"))) const graft::ExportedTimings* graft_operator_timings() noexcept;

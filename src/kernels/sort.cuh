// Sorts with CUB in memory that a plan has reserved.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/launch.cuh"

namespace graft {

/// Sorts with CUB. `sort(scratch, bytes)` calls a function of CUB, which only sets `bytes` to the size that it needs if
/// `scratch` is null. Returns unsupported if CUB needs more than the `available` bytes at `scratch`.
template <class Sort>
[[nodiscard]] Status sort_within(const char* what, const Sort& sort, std::byte* scratch, std::int64_t available) {
  std::size_t bytes = 0;
  if (Status asked = cuda_status(sort(nullptr, bytes), what); !asked.ok()) return asked;
  if (bytes > static_cast<std::size_t>(available)) {
    return unsupported(std::string(what) + ": CUB sorts with " + std::to_string(bytes) +
                       " bytes of scratch memory, but only " + std::to_string(available) + " are available");
  }
  return cuda_status(sort(scratch, bytes), what);
}

}  // namespace graft

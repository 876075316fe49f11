// Sorts of CUB in memory that a plan has set aside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/launch.cuh"

namespace graft {

/// `sort(scratch, bytes)` is a call of CUB, which asked with no scratch memory says how much it wants.
template <class Sort>
[[nodiscard]] Status sort_within(const char* what, const Sort& sort, std::byte* scratch, std::int64_t available) {
  std::size_t bytes = 0;
  if (Status asked = cuda_status(sort(nullptr, bytes), what); !asked.ok()) return asked;
  if (bytes > static_cast<std::size_t>(available)) {
    return unsupported(std::string(what) + ": CUB sorts with " + std::to_string(bytes) +
                       " bytes of scratch memory, there are " + std::to_string(available));
  }
  return cuda_status(sort(scratch, bytes), what);
}

}  // namespace graft

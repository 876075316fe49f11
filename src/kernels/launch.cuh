// Kernel launches whose errors become a Status, and what kernels are told of the GPU they run on.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "graft/status.hpp"
#include "graft/tensor.hpp"

namespace graft {

/// "leaky_relu: cudaErrorInvalidValue: invalid argument"; ok for cudaSuccess.
[[nodiscard]] Status cuda_status(cudaError_t error, const char* what);

/// The facts that tuning depends on.
struct DeviceTraits {
  int multiprocessors = 0;
  int threads_per_multiprocessor = 0;
  int compute_major = 0;
  int shared_bytes = 0;  ///< The most that one block may use.

  [[nodiscard]] bool has_clusters() const { return compute_major >= 9; }
};

/// Of the current device; asked for once per device, at the first run. Legal inside stream capture.
[[nodiscard]] Status current_device(DeviceTraits& traits);

struct Grid {
  std::int64_t blocks = 0;
  int threads = 0;
  int cluster = 1;        ///< Blocks of a cluster; `blocks` is a multiple of it.
  int shared_bytes = 0;   ///< Of `extern __shared__` memory.
  bool overlaps = false;  ///< Begins before the kernel ahead of it in the stream has ended, see overlap.cuh.
};

namespace detail {

/// What launch() does whatever the kernel's parameters are: `arguments` has the address of each.
[[nodiscard]] Status launch_kernel(const char* what, const void* kernel, const Grid& grid, CUstream_st* stream,
                                   void** arguments);

}  // namespace detail

/// Starts `kernel` on the context's stream. A grid of no blocks is nothing to do.
template <class... Parameters, class... Arguments>
[[nodiscard]] Status launch(const char* what, void (*kernel)(Parameters...), const Grid& grid,
                            const CudaContext& context, const Arguments&... arguments) {
  const auto start = [&](Parameters... values) {
    void* addresses[] = {const_cast<void*>(static_cast<const void*>(&values))..., nullptr};
    return detail::launch_kernel(what, reinterpret_cast<const void*>(kernel), grid, context.stream, addresses);
  };
  return start(static_cast<Parameters>(arguments)...);
}

[[nodiscard]] constexpr std::int64_t ceil_divide(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// A grid for so many threads that share nothing: small blocks spread few threads over all multiprocessors; of many
/// threads, larger blocks take less time to start (on an H100 a microsecond for 1,800 blocks, whatever their size).
[[nodiscard]] inline Grid spread_grid(std::int64_t threads, const DeviceTraits& device) {
  constexpr int small = 128;
  constexpr int large = 256;
  const int block = threads <= std::int64_t{8} * small * device.multiprocessors ? small : large;
  return {.blocks = ceil_divide(threads, block), .threads = block};
}
inline constexpr int spread_most_threads = 256;

[[nodiscard]] inline bool is_aligned(const void* address, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(address) % bytes == 0;
}

}  // namespace graft

// Launches kernels and returns their errors as a Status, and queries the properties of a GPU on which kernels depend.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "graft/operator/status.hpp"
#include "graft/operator/tensor.hpp"

namespace graft {

/// Returns ok for cudaSuccess, and otherwise a Status such as "leaky_relu: cudaErrorInvalidValue: invalid argument".
[[nodiscard]] Status cuda_status(cudaError_t error, const char* what);

/// The properties of a device on which tuning depends.
struct DeviceTraits {
  int multiprocessors = 0;
  int threads_per_multiprocessor = 0;
  int compute_major = 0;
  int shared_bytes = 0;  ///< The maximum number of bytes of shared memory that one block may use.

  [[nodiscard]] bool has_clusters() const { return compute_major >= 9; }
};

/// Sets the traits of the current device, which are queried once per device, at the first run. May be called during
/// stream capture.
[[nodiscard]] Status current_device(DeviceTraits& traits);

struct Grid {
  std::int64_t blocks = 0;
  int threads = 0;
  int cluster = 1;       ///< The number of blocks in a cluster. `blocks` is a multiple of it.
  int shared_bytes = 0;  ///< The number of bytes of `extern __shared__` memory.
  /// Whether the kernel begins before the previous kernel of the stream has ended; see overlap.cuh.
  bool overlaps = false;
};

namespace detail {

/// Launches a kernel with any parameters. `arguments` contains the address of each argument. `what` is the operator's
/// name in error messages.
[[nodiscard]] Status launch_kernel(const char* what, const void* kernel, const Grid& grid, CUstream_st* stream,
                                   void** arguments);

}  // namespace detail

/// Launches `kernel` on the stream of the context. Does nothing for a grid without blocks. `what` is the operator's
/// name in error messages.
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

/// Returns a grid for threads that share no data. Small blocks spread few threads over all multiprocessors. For many
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

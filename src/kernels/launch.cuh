// Kernel launches whose errors become a Status, and what kernels are told of the GPU they run on.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <string>
#include <type_traits>

#include "graft/status.hpp"
#include "graft/tensor.hpp"

namespace graft {

/// "leaky_relu: cudaErrorInvalidValue: invalid argument"; ok for cudaSuccess.
[[nodiscard]] inline Status cuda_status(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return {};
  static_cast<void>(cudaGetLastError());  // otherwise the caller's next check would report it once more
  return {StatusCode::cuda_error,
          std::string(what) + ": " + cudaGetErrorName(error) + ": " + cudaGetErrorString(error)};
}

/// The facts that tuning depends on.
struct DeviceTraits {
  int multiprocessors = 0;
  int threads_per_multiprocessor = 0;
  int compute_major = 0;
  int shared_bytes = 0;  ///< The most that one block may use.

  [[nodiscard]] bool has_clusters() const { return compute_major >= 9; }
};

/// Of the current device; asked for once per device, at the first run. Legal inside stream capture.
[[nodiscard]] inline Status current_device(DeviceTraits& traits) {
  constexpr int max_devices = 64;
  static std::mutex mutex;
  static std::array<DeviceTraits, max_devices> cache;
  int device = 0;
  if (Status status = cuda_status(cudaGetDevice(&device), "cudaGetDevice"); !status.ok()) return status;
  if (device >= max_devices) return unsupported("device " + std::to_string(device) + "; 0 to 63 are supported");
  const std::lock_guard lock(mutex);
  DeviceTraits& entry = cache[static_cast<std::size_t>(device)];
  if (entry.multiprocessors == 0) {
    DeviceTraits fresh;
    const auto ask = [&](int& value, cudaDeviceAttr attribute) {
      return cuda_status(cudaDeviceGetAttribute(&value, attribute, device), "cudaDeviceGetAttribute");
    };
    if (Status status = ask(fresh.multiprocessors, cudaDevAttrMultiProcessorCount); !status.ok()) return status;
    if (Status status = ask(fresh.threads_per_multiprocessor, cudaDevAttrMaxThreadsPerMultiProcessor); !status.ok()) {
      return status;
    }
    if (Status status = ask(fresh.compute_major, cudaDevAttrComputeCapabilityMajor); !status.ok()) return status;
    if (Status status = ask(fresh.shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin); !status.ok()) return status;
    entry = fresh;
  }
  traits = entry;
  return {};
}

struct Grid {
  std::int64_t blocks = 0;
  int threads = 0;
  int cluster = 1;       ///< Blocks of a cluster; `blocks` is a multiple of it.
  int shared_bytes = 0;  ///< Of `extern __shared__` memory.
};

/// Starts `kernel` on the context's stream. A grid of no blocks is nothing to do.
template <class... Parameters, class... Arguments>
[[nodiscard]] Status launch(const char* what, void (*kernel)(Parameters...), const Grid& grid,
                            const CudaContext& context, const Arguments&... arguments) {
  if (grid.blocks == 0) return {};
  if (grid.blocks > std::numeric_limits<std::int32_t>::max()) {
    return unsupported(std::string(what) + ": needs " + std::to_string(grid.blocks) +
                       " blocks; CUDA allows 2147483647");
  }
  constexpr int always_allowed = 48 * 1024;
  if (grid.shared_bytes > always_allowed) {
    const auto error = cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                            cudaFuncAttributeMaxDynamicSharedMemorySize, grid.shared_bytes);
    if (Status status = cuda_status(error, what); !status.ok()) return status;
  }
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = static_cast<unsigned>(grid.cluster);
  cluster.val.clusterDim.y = 1;
  cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(grid.blocks));
  config.blockDim = dim3(static_cast<unsigned>(grid.threads));
  config.dynamicSmemBytes = static_cast<std::size_t>(grid.shared_bytes);
  config.stream = context.stream;
  config.attrs = &cluster;
  config.numAttrs = grid.cluster > 1 ? 1 : 0;
  return cuda_status(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...), what);
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

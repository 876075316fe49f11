// Constants that operators store on a device, the traits of the device, and launches of kernels.
#include <cuda_runtime.h>

#include <array>
#include <cstdint>
#include <limits>
#include <mutex>
#include <vector>

#include "graft/operator/define_operator.hpp"
#include "kernels/launch.cuh"
#include "kernels/register.hpp"

namespace graft {

Status cuda_status(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return {};
  static_cast<void>(cudaGetLastError());  // Clears the error, which the caller's next check would report again.
  return {StatusCode::cuda_error,
          std::string(what) + ": " + cudaGetErrorName(error) + ": " + cudaGetErrorString(error)};
}

Status current_device(DeviceTraits& traits) {
  constexpr int max_devices = 64;
  static std::mutex mutex;
  static std::array<DeviceTraits, max_devices> cache;
  int device = 0;
  if (Status status = cuda_status(cudaGetDevice(&device), "cudaGetDevice"); !status.ok()) return status;
  if (device >= max_devices)
    return unsupported("CUDA device " + std::to_string(device) + " is not supported; only the devices 0 to 63 are");
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

Status runs_on_current_device(int compute) {
  if (compute == 0) return {};
  DeviceTraits device;
  if (Status status = current_device(device); !status.ok()) return status;
  if (device.compute_major == compute / 10) return {};
  return unsupported("needs compute capability " + std::to_string(compute / 10) + ".x; the device has " +
                     std::to_string(device.compute_major) + ".x");
}

namespace detail {
namespace {

/// Sets `waits` to whether the code of the kernel contains the instructions of overlap.cuh, which require compute
/// capability 9.0.
Status waits_for_kernel_ahead(const char* what, const void* kernel, bool& waits) {
  constexpr int since = 90;
  cudaFuncAttributes attributes{};
  const Status status = cuda_status(cudaFuncGetAttributes(&attributes, kernel), what);
  waits = attributes.ptxVersion >= since && attributes.binaryVersion >= since;
  return status;
}

}  // namespace

Status launch_kernel(const char* what, const void* kernel, const Grid& grid, CUstream_st* stream, void** arguments) {
  if (grid.blocks == 0) return {};
  if (grid.blocks > std::numeric_limits<std::int32_t>::max()) {
    return unsupported(std::string(what) + ": needs " + std::to_string(grid.blocks) +
                       " blocks; a CUDA grid has at most 2147483647");
  }
  constexpr int always_allowed = 48 * 1024;
  if (grid.shared_bytes > always_allowed) {
    const auto error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, grid.shared_bytes);
    if (Status status = cuda_status(error, what); !status.ok()) return status;
  }
  std::array<cudaLaunchAttribute, 2> attributes{};
  unsigned count = 0;
  if (grid.cluster > 1) {
    cudaLaunchAttribute& cluster = attributes[count++];
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = static_cast<unsigned>(grid.cluster);
    cluster.val.clusterDim.y = 1;
    cluster.val.clusterDim.z = 1;
  }
  if (grid.overlaps) {
    bool waits = false;
    if (Status status = waits_for_kernel_ahead(what, kernel, waits); !status.ok()) return status;
    if (waits) {
      cudaLaunchAttribute& overlap = attributes[count++];
      overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
      overlap.val.programmaticStreamSerializationAllowed = 1;
    }
  }
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(grid.blocks));
  config.blockDim = dim3(static_cast<unsigned>(grid.threads));
  config.dynamicSmemBytes = static_cast<std::size_t>(grid.shared_bytes);
  config.stream = stream;
  config.attrs = attributes.data();
  config.numAttrs = count;
  return cuda_status(cudaLaunchKernelExC(&config, kernel, arguments), what);
}

namespace {

/// Relaxes the capture mode of this thread for the lifetime of the object. Otherwise CUDA does not allow the thread to
/// allocate or free memory while another thread captures a stream.
class RelaxedCapture {
 public:
  RelaxedCapture() { static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode_)); }
  ~RelaxedCapture() { static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode_)); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

struct FreeDeviceMemory {
  // An error means that the process is ending, and that the memory of the device has already been freed.
  void operator()(void* address) const {
    const RelaxedCapture relaxed;  // A plugin may be destroyed while another thread captures a stream.
    static_cast<void>(cudaFree(address));
  }
};
using DeviceMemory = std::unique_ptr<void, FreeDeviceMemory>;

Status copy_to_device(const std::vector<std::byte>& host, DeviceMemory& result) {
  const RelaxedCapture relaxed;
  void* address = nullptr;
  if (Status status = cuda_status(cudaMalloc(&address, std::max<std::size_t>(host.size(), 1)), "cudaMalloc");
      !status.ok()) {
    return status;
  }
  DeviceMemory memory(address);
  // A new stream is used, because the default stream would wait for work that may be part of a capture.
  cudaStream_t stream = nullptr;
  if (Status status = cuda_status(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
      !status.ok()) {
    return status;
  }
  cudaError_t error = cudaMemcpyAsync(address, host.data(), host.size(), cudaMemcpyHostToDevice, stream);
  if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
  static_cast<void>(cudaStreamDestroy(stream));
  if (Status status = cuda_status(error, "copying a constant to the device"); !status.ok()) return status;
  result = std::move(memory);
  return {};
}

class Constants final : public DeviceConstants {
 public:
  [[nodiscard]] Status find_or_make(std::span<const TensorDesc> descs, const Fill& fill,
                                    std::span<const void*> addresses) override;

 private:
  struct Set {
    int device = 0;
    std::vector<TensorDesc> descs;
    std::vector<DeviceMemory> memory;
  };
  std::mutex mutex_;
  std::vector<Set> sets_;
};

Status Constants::find_or_make(std::span<const TensorDesc> descs, const Fill& fill, std::span<const void*> addresses) {
  int device = 0;
  if (Status status = cuda_status(cudaGetDevice(&device), "cudaGetDevice"); !status.ok()) return status;
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(sets_.begin(), sets_.end(), [&](const Set& set) {
    return set.device == device && std::equal(set.descs.begin(), set.descs.end(), descs.begin(), descs.end());
  });
  if (found != sets_.end()) {
    for (std::size_t i = 0; i < addresses.size(); ++i) addresses[i] = found->memory[i].get();
    return {};
  }
  Set made{.device = device, .descs = {descs.begin(), descs.end()}, .memory = {}};
  for (std::size_t i = 0; i < descs.size(); ++i) {
    std::vector<std::byte> host(static_cast<std::size_t>(descs[i].storage_bytes()));
    fill(i, host.data());
    if (Status status = copy_to_device(host, made.memory.emplace_back()); !status.ok()) return status;
    addresses[i] = made.memory.back().get();
  }
  sets_.push_back(std::move(made));
  return {};
}

}  // namespace

std::shared_ptr<DeviceConstants> new_device_constants() { return std::make_shared<Constants>(); }

}  // namespace detail
}  // namespace graft

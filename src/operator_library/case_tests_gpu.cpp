// Case tests of CUDA kernels, on the GPU of this machine.
#include <cuda_runtime.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "graft/operator/registry.hpp"
#include "kernels/launch.cuh"
#include "operator_library/case_tests.hpp"

namespace graft::operator_library {
namespace {

void check(cudaError_t error, const char* what) {
  if (const Status status = cuda_status(error, what); !status.ok()) throw std::runtime_error(status.message());
}

/// Converts a CUDA version number, such as 13000, to a string such as "13.0".
std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

/// Throws std::runtime_error if `status` reports that the program contains no code for the GPU. A launch is the first
/// call that reports this, and it fails for every case.
void check_code(const Status& status) {
  if (status.message().find(cudaGetErrorName(cudaErrorNoKernelImageForDevice)) == std::string::npos) return;
  cudaDeviceProp device{};
  check(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
  const std::string architecture = std::to_string(device.major) + std::to_string(device.minor);
  throw std::runtime_error("the kernels are compiled for " GRAFT_COMPILED_FOR ", and this machine's GPU, " +
                           std::string(device.name) + ", is " + architecture +
                           "\nConfigure with -DGRAFT_CUDA_ARCHITECTURES=" + architecture +
                           "-real, or with =all for every GPU since Turing, and build again");
}

/// Device memory at an address that is `shift` bytes off its alignment, filled with a pattern that no result contains.
class DeviceMemory {
 public:
  DeviceMemory(std::size_t size, std::size_t shift) : size_(size), shift_(shift) {
    void* address = nullptr;
    check(cudaMalloc(&address, size + shift + 1), "cudaMalloc");
    memory_.reset(static_cast<std::byte*>(address));
    spoil();
  }
  [[nodiscard]] void* data() const { return memory_.get() + shift_; }
  void spoil() const {
    constexpr int pattern = 0xA5;
    check(cudaMemset(data(), pattern, size_), "cudaMemset");
  }
  void write(const std::vector<std::byte>& bytes) const {
    check(cudaMemcpy(data(), bytes.data(), size_, cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  [[nodiscard]] std::vector<std::byte> read() const {
    std::vector<std::byte> bytes(size_);
    check(cudaMemcpy(bytes.data(), data(), size_, cudaMemcpyDeviceToHost), "cudaMemcpy");
    return bytes;
  }

 private:
  struct Free {
    void operator()(std::byte* address) const { static_cast<void>(cudaFree(address)); }
  };
  std::size_t size_;
  std::size_t shift_;
  std::unique_ptr<std::byte, Free> memory_;
};

}  // namespace

std::string why_no_gpu(const std::string& program) {
  register_cuda_kernels();
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error == cudaSuccess && devices > 0) return "";
  int driver = 0;
  static_cast<void>(cudaDriverGetVersion(&driver));
  const std::string runs = "CUDA " + version_text(CUDART_VERSION);
  std::string why = "this machine has no NVIDIA GPU";
  if (driver == 0) {
    why = "this machine has no NVIDIA driver, so CUDA finds no GPU";
  } else if (error == cudaErrorInsufficientDriver) {
    why = "the NVIDIA driver of this machine supports CUDA up to " + version_text(driver) + ", but the kernels need " +
          runs;
  } else if (error != cudaSuccess && error != cudaErrorNoDevice) {
    why = std::string("CUDA cannot run kernels on this machine: ") + cudaGetErrorString(error);
  }
  return why + "\nTo test the CUDA kernels, copy " + program + " to a machine with an NVIDIA GPU and a driver for " +
         runs + ", and run it there; it needs no other files";
}

std::string check_on_gpu(const ops::OperatorCase& test) {
  const Operator& op = *test.op;
  const std::vector<ops::HostTensor> inputs = ops::make_inputs(test);
  const std::vector<TensorDesc> descs = ops::output_descs(op, test.inputs, test.shape_values);
  const auto expected = ops::expected_outputs(op, inputs, test.shape_values);
  const Problem problem{test.inputs, descs};

  std::vector<DeviceMemory> memory;
  std::vector<const void*> input_addresses;
  std::vector<void*> output_addresses;
  const auto allocate = [&](const TensorDesc& desc) -> const DeviceMemory& {
    return memory.emplace_back(static_cast<std::size_t>(desc.storage_bytes()),
                               static_cast<std::size_t>(test.shift) * size_of(desc.dtype));
  };
  for (const ops::HostTensor& input : inputs) {
    const DeviceMemory& tensor = allocate(input.desc);
    tensor.write(input.bytes);
    input_addresses.push_back(tensor.data());
  }
  for (const TensorDesc& desc : descs) output_addresses.push_back(allocate(desc).data());
  const DeviceMemory workspace(op.workspace(problem), 0);

  bool fits = false;
  for (const VariantInfo& variant : op.cuda_variants(problem)) {
    if (!variant.fits.ok() || !runs_on_current_device(variant.compute).ok()) continue;
    fits = true;
    const std::string name = "kernel " + std::string(variant.name) + ": ";
    for (std::size_t i = 0; i < descs.size(); ++i) memory[inputs.size() + i].spoil();
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    const Status status =
        op.run_cuda(problem, {input_addresses, output_addresses, workspace.data()}, {nullptr, variant.name});
    check_code(status);
    if (!status.ok()) return name + status.message();
    check(cudaDeviceSynchronize(), std::string(variant.name).c_str());
    for (std::size_t i = 0; i < descs.size(); ++i) {
      const float scale = ops::scale_of(op, op.type().ports[op.type().input_count() + i].name);
      const ops::HostTensor found{descs[i], memory[inputs.size() + i].read()};
      const std::string wrong = ops::compare(found, expected[i], test.tolerance, scale, test.absolute);
      if (!wrong.empty()) return name + wrong;
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (memory[i].read() != inputs[i].bytes) return name + "the kernel writes to its inputs";
    }
  }
  return fits ? "" : "no kernel supports this case";
}

}  // namespace graft::operator_library

// Tensors in device memory with guard bytes around them.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "graft/operator/tensor.hpp"

namespace graft::testing {

inline void check_cuda(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorName(error));
}

struct StreamDestroyer {
  void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
};
using Stream = std::unique_ptr<CUstream_st, StreamDestroyer>;

[[nodiscard]] inline Stream make_stream() {
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  return Stream(stream);
}

/// Returns whether the test runs under compute-sanitizer, which finds out-of-bounds accesses itself: guard bytes and
/// poison would hide them.
[[nodiscard]] inline bool under_sanitizer() {
  static const bool is_set = std::getenv("GRAFT_SANITIZE") != nullptr;
  return is_set;
}

/// A tensor in a separate allocation of device memory, so that a memory checker knows its bounds; `shift` bytes off its
/// alignment.
class DeviceTensor {
 public:
  static constexpr unsigned char guard_byte = 0xC7;
  static constexpr unsigned char poison = 0xA5;

  explicit DeviceTensor(std::size_t size, std::size_t shift = 0) : size_(size), shift_(shift) {
    void* address = nullptr;
    check_cuda(cudaMalloc(&address, total()), "cudaMalloc");
    memory_.reset(static_cast<std::byte*>(address));
    if (!under_sanitizer()) check_cuda(cudaMemset(memory_.get(), guard_byte, total()), "cudaMemset");
    spoil();
  }

  [[nodiscard]] void* data() const { return memory_.get() + guard_ + shift_; }
  [[nodiscard]] std::size_t size() const { return size_; }

  void spoil() const {
    if (!under_sanitizer()) check_cuda(cudaMemset(data(), poison, size_), "cudaMemset");
  }
  void write(const std::vector<std::byte>& bytes) const {
    check_cuda(cudaMemcpy(data(), bytes.data(), size_, cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  [[nodiscard]] std::vector<std::byte> read() const {
    std::vector<std::byte> bytes(size_);
    check_cuda(cudaMemcpy(bytes.data(), data(), size_, cudaMemcpyDeviceToHost), "cudaMemcpy");
    return bytes;
  }
  [[nodiscard]] bool guards_intact() const {
    if (under_sanitizer()) return true;
    std::vector<unsigned char> bytes(guard_ + shift_);
    check_cuda(cudaMemcpy(bytes.data(), memory_.get(), bytes.size(), cudaMemcpyDeviceToHost), "cudaMemcpy");
    const std::vector<unsigned char> before(bytes.size(), guard_byte);
    if (bytes != before) return false;
    bytes.resize(guard_);
    const std::vector<unsigned char> after(guard_, guard_byte);
    check_cuda(cudaMemcpy(bytes.data(), static_cast<std::byte*>(data()) + size_, guard_, cudaMemcpyDeviceToHost),
               "cudaMemcpy");
    return bytes == after;
  }

 private:
  struct Freer {
    void operator()(std::byte* address) const { cudaFree(address); }
  };
  [[nodiscard]] std::size_t total() const { return guard_ + shift_ + size_ + guard_; }

  std::unique_ptr<std::byte, Freer> memory_;
  std::size_t guard_ = under_sanitizer() ? 0 : 256;
  std::size_t size_;
  std::size_t shift_;
};

}  // namespace graft::testing

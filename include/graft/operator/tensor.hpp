// The arguments of a kernel: descriptions of its tensors (Problem), their addresses (Buffers), and a stream or threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "graft/operator/dtype.hpp"
#include "graft/operator/layout.hpp"
#include "graft/operator/shape.hpp"

struct CUstream_st;  // The type that cudaStream_t points to; declared here so that this header does not need CUDA.

namespace graft {

/// The type, layout and shape of a tensor. The extents are the logical sizes (N,C,spatial...) in every layout.
struct TensorDesc {
  DType dtype = DType::f32;
  Layout layout = Layout::linear;
  Extents extents;

  /// Returns the number of elements in memory, including the padding of a vectorized layout.
  [[nodiscard]] std::int64_t storage_count() const;
  /// Returns the size in memory in bytes, including padding. Saturates at the largest 64-bit integer.
  [[nodiscard]] std::int64_t storage_bytes() const;

  friend bool operator==(const TensorDesc& a, const TensorDesc& b) = default;
};

/// Returns a string such as "f16 hwc8 1x3x8x8"; a linear layout is not named.
[[nodiscard]] std::string to_string(const TensorDesc& desc);

/// The tensors of a call, in the order of the operator's ports.
///
/// A dimension of an output that depends on data (data_size in shape.hpp) has its largest value here, and the output's
/// memory has room for that size. The kernel writes the actual size to the size output. It writes the elements
/// contiguously from the beginning of the memory, as in a tensor of the actual size; the content of the remaining
/// memory does not matter.
struct Problem {
  std::span<const TensorDesc> inputs;
  std::span<const TensorDesc> outputs;
};

/// The addresses of the tensors, in the order of Problem: host memory for the CPU, device memory for CUDA. Inputs and
/// outputs do not overlap, except that an output may have the address of its Operator::aliased_input.
struct Buffers {
  std::span<const void* const> inputs;
  std::span<void* const> outputs;
  void* workspace = nullptr;  ///< Scratch memory of at least Operator::workspace bytes, aligned to 256 bytes.
};

/// The threads that a reference kernel may use. `parallel_for` calls `body(begin, end)` for ranges that together cover
/// 0..count exactly once.
struct CpuContext {
  using Body = std::function<void(std::int64_t begin, std::int64_t end)>;
  std::function<void(std::int64_t count, const Body& body)> parallel_for = [](std::int64_t count, const Body& body) {
    body(0, count);
  };
};

/// The stream on which a CUDA kernel runs. `variant` names the implementation; if it is empty, the first implementation
/// that fits runs.
struct CudaContext {
  CUstream_st* stream = nullptr;
  std::string_view variant;
};

}  // namespace graft

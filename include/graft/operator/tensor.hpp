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

struct CUstream_st;  // what cudaStream_t points to; declared here so that this header needs no CUDA

namespace graft {

/// Type, layout and shape of a tensor. The extents are the logical ones (N,C,spatial...) in every layout.
struct TensorDesc {
  DType dtype = DType::f32;
  Layout layout = Layout::linear;
  Extents extents;

  /// Returns the number of elements in memory, including the padding of a vectorized layout.
  [[nodiscard]] std::int64_t storage_count() const;
  /// Returns the bytes in memory, including padding; saturates at the largest 64-bit integer.
  [[nodiscard]] std::int64_t storage_bytes() const;

  friend bool operator==(const TensorDesc& a, const TensorDesc& b) = default;
};

/// Returns "f16 hwc8 1x3x8x8"; a linear layout is not shown.
[[nodiscard]] std::string to_string(const TensorDesc& desc);

/// The tensors of a call, in the order of the operator's ports.
///
/// A dimension of an output that depends on data (data_size in shape.hpp) has its largest value here, and the output's
/// memory has room for that. The kernel writes the actual size to the size output, and the elements contiguously, as in
/// a tensor of the actual size, from the beginning of the memory. The content of the remaining memory does not matter.
struct Problem {
  std::span<const TensorDesc> inputs;
  std::span<const TensorDesc> outputs;
};

/// The addresses of the tensors, in the order of Problem: host memory for the CPU, device memory for CUDA. Inputs and
/// outputs do not overlap, except that an output may have the address of its Operator::aliased_input.
struct Buffers {
  std::span<const void* const> inputs;
  std::span<void* const> outputs;
  void* workspace = nullptr;  ///< At least Operator::workspace bytes, aligned to 256.
};

/// The threads of a reference kernel. `parallel_for` calls `body(begin, end)` for ranges that together cover 0..count
/// once.
struct CpuContext {
  using Body = std::function<void(std::int64_t begin, std::int64_t end)>;
  std::function<void(std::int64_t count, const Body& body)> parallel_for = [](std::int64_t count, const Body& body) {
    body(0, count);
  };
};

/// The stream of a CUDA kernel. `variant` names the implementation to run; where it is empty, the first that fits runs.
struct CudaContext {
  CUstream_st* stream = nullptr;
  std::string_view variant;
};

}  // namespace graft

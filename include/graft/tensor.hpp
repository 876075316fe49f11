// What a kernel is told: descriptions of its tensors (Problem), their addresses (Buffers) and where it runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "graft/dtype.hpp"
#include "graft/layout.hpp"
#include "graft/shape.hpp"

struct CUstream_st;  // what cudaStream_t points to; declared so that this header needs no CUDA

namespace graft {

/// A tensor without its data. The extents are the logical ones (N,C,spatial...) in every layout.
struct TensorDesc {
  DType dtype = DType::f32;
  Layout layout = Layout::linear;
  Extents extents;

  /// Elements in memory: the padding of a vectorized layout counts.
  [[nodiscard]] std::int64_t storage_count() const;
  /// Bytes in memory; saturates at the largest 64-bit integer.
  [[nodiscard]] std::int64_t storage_bytes() const;

  friend bool operator==(const TensorDesc& a, const TensorDesc& b) = default;
};

/// "f16 hwc8 1x3x8x8"; the layout is left out where it is linear.
[[nodiscard]] std::string to_string(const TensorDesc& desc);

/// All tensors of one call, in the order of the operator's ports.
///
/// A dimension of an output that depends on data (data_size in shape.hpp) has its largest value here, and the output's
/// memory has room for that. The kernel writes the size that it found to the size output, and the elements next to each
/// other as in a tensor of that size, from the beginning of the memory; what the rest holds does not matter.
struct Problem {
  std::span<const TensorDesc> inputs;
  std::span<const TensorDesc> outputs;
};

/// Addresses in the order of Problem. Host memory for the CPU, device memory for CUDA. Inputs and outputs do not
/// overlap, but for an output that has the address of its Operator::aliased_input.
struct Buffers {
  std::span<const void* const> inputs;
  std::span<void* const> outputs;
  void* workspace = nullptr;  ///< At least Operator::workspace bytes, aligned to 256.
};

/// Where a reference kernel runs. `parallel_for` calls `body(begin, end)` for pieces that together cover 0..count once.
struct CpuContext {
  using Body = std::function<void(std::int64_t begin, std::int64_t end)>;
  std::function<void(std::int64_t count, const Body& body)> parallel_for = [](std::int64_t count, const Body& body) {
    body(0, count);
  };
};

/// Where a CUDA kernel runs. `variant` names the implementation to use; empty takes the first that fits.
struct CudaContext {
  CUstream_st* stream = nullptr;
  std::string_view variant;
};

}  // namespace graft

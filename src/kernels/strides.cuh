// Indices into strided tensors on the GPU.
#pragma once

#include <cstdint>

#include "graft/operator/shape.hpp"

namespace graft {

/// Returns a / b, computed in 32 bits if both fit: 64-bit division takes about a hundred instructions.
[[nodiscard]] __device__ inline std::int64_t divide(std::int64_t a, std::int64_t b) {
  if (((a | b) >> 32) == 0) return static_cast<unsigned>(a) / static_cast<unsigned>(b);
  return a / b;
}

/// A loop over at most four strided dimensions, of which the last varies fastest. It represents the kept or the reduced
/// dimensions of a tensor of rank up to 8.
struct StridedLoop {
  static constexpr int max_rank = Extents::max_rank / 2;
  int rank = 0;
  std::int64_t extent[max_rank] = {};
  std::int64_t stride[max_rank] = {};  ///< The strides in elements.

  /// Returns a loop that steps over `width` adjacent elements of the last dimension, which must be contiguous, at once.
  [[nodiscard]] static StridedLoop make(const Extents& extents, const Extents& strides, int width = 1) {
    StridedLoop loop;
    loop.rank = extents.rank();
    for (int i = 0; i < loop.rank; ++i) {
      loop.extent[i] = extents[i];
      loop.stride[i] = strides[i];
    }
    if (width > 1) {
      loop.extent[loop.rank - 1] /= width;
      loop.stride[loop.rank - 1] *= width;
    }
    return loop;
  }

  [[nodiscard]] __device__ std::int64_t offset(std::int64_t index) const {
    if (rank == 0) return 0;
    std::int64_t result = 0;
#pragma unroll
    for (int i = max_rank - 1; i > 0; --i) {
      if (i >= rank) continue;
      const std::int64_t quotient = divide(index, extent[i]);
      result += (index - quotient * extent[i]) * stride[i];
      index = quotient;
    }
    return result + index * stride[0];
  }
};

}  // namespace graft

// Sums over the threads of a warp or a block, always in the same order. CUB is not used, because nvcc takes longer to
// read its headers than to compile most kernels.
#pragma once

namespace graft {

/// Returns the sum over the lanes of a warp to all of its lanes.
[[nodiscard]] __device__ inline float warp_sum(float value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(0xFFFFFFFFU, value, distance);
  return value;
}

/// Returns the sum over a block of whole warps to all threads, all of which must call the function. `partial` has room
/// for one number per warp.
template <int Warps>
[[nodiscard]] __device__ float block_sum(float value, float (&partial)[Warps]) {
  const float own = warp_sum(value);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = own;
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (const float each : partial) sum += each;
  return sum;
}

}  // namespace graft

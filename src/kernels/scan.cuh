// Prefix sums of integers over the lanes of a warp and the threads of a block. They are the positions at which threads
// write the elements that they keep.
#pragma once

namespace graft {

/// Returns the sum of `value` over the lanes of the warp before this lane; 0 for lane 0.
template <class Number>
[[nodiscard]] __device__ Number sum_of_lanes_before(Number value) {
  constexpr unsigned all_lanes = 0xFFFFFFFFU;
  const unsigned lane = threadIdx.x % 32;
  Number sum = value;
#pragma unroll
  for (unsigned distance = 1; distance < 32; distance *= 2) {
    const Number other = __shfl_up_sync(all_lanes, sum, distance);
    if (lane >= distance) sum += other;
  }
  return sum - value;
}

template <class Number>
struct BlockSums {
  Number before;  ///< The sum over the threads before this one.
  Number all;
};

/// Returns the sum of `value` over the threads before this one, and over all threads of the block, which has `Warps`
/// warps. All threads of the block must call the function.
template <int Warps, class Number>
[[nodiscard]] __device__ BlockSums<Number> block_sums(Number value) {
  __shared__ Number of_warps[Warps];
  const unsigned own = threadIdx.x / 32;
  const Number before = sum_of_lanes_before(value);
  if (threadIdx.x % 32 == 31) of_warps[own] = before + value;
  __syncthreads();
  BlockSums<Number> sums{before, 0};
  for (unsigned warp = 0; warp < Warps; ++warp) {
    if (warp < own) sums.before += of_warps[warp];
    sums.all += of_warps[warp];
  }
  __syncthreads();  // All threads have read of_warps, which may be written again.
  return sums;
}

}  // namespace graft

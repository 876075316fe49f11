// Euclidean norms over any axes and of any length. One pass computes the norm. A second pass reads the same elements,
// which are still in the L2 cache unless there are too many. If there are few long vectors, several blocks share each
// vector.
#pragma once

#include <algorithm>

#include "core/reduction.hpp"
#include "kernels/launch.cuh"
#include "kernels/normalizer.cuh"
#include "kernels/reduce.cuh"
#include "kernels/strides.cuh"

namespace graft {

struct Strided {
  StridedLoop kept;     ///< The kept dimensions, in vectors of N elements if the innermost dimension is kept.
  StridedLoop reduced;  ///< The reduced dimensions, in vectors of N elements if the innermost dimension is reduced.
  std::int64_t kept_count;
  std::int64_t reduced_count;
  int splits = 1;  ///< The number of blocks that share the elements of a vector.
  /// The partial sums of the blocks that share a vector: a row of `splits` sums for each vector of the tensor.
  float* partials = nullptr;
};

enum class StridedStep : std::uint8_t { everything, sum, scale };

namespace kernels {

inline constexpr int strided_threads = 512;
inline constexpr int in_flight = 4;  // The number of vectors that a thread loads before it uses the first one.

/// Normalizes vectors along any axes. With InnerKept a block processes 32 adjacent accesses (of N elements) along the
/// kept dimensions, otherwise one kept element.
template <class T, int N, bool InnerKept>
__global__ void __launch_bounds__(strided_threads)
    strided(const T* x, T* y, Strided problem, StridedStep step, Normalizer normalizer, ChannelWeights weights) {
  constexpr int S = InnerKept ? N : 1;  // The number of sums that a thread keeps.
  constexpr int width = InnerKept ? 32 : 1;
  constexpr int height = strided_threads / width;
  const int tx = static_cast<int>(threadIdx.x) % width;
  const int ty = static_cast<int>(threadIdx.x) / width;
  const std::int64_t tile = blockIdx.x / static_cast<unsigned>(problem.splits);
  const std::int64_t split = blockIdx.x % static_cast<unsigned>(problem.splits);
  const std::int64_t kept = tile * width + tx;
  const bool active = kept < problem.kept_count;
  const std::int64_t base = active ? problem.kept.offset(kept) : 0;
  const std::int64_t share = (problem.reduced_count + problem.splits - 1) / problem.splits;
  const std::int64_t begin = split * share + ty;
  const std::int64_t end = active ? ::min(problem.reduced_count, (split + 1) * share) : 0;

  __shared__ float partial[InnerKept ? height : 1][width * S];
  __shared__ float of_warps[strided_threads / 32];
  __shared__ float totals[width * S];

  if (step != StridedStep::scale) {
    float sums[S] = {};
    for (std::int64_t i = begin; i < end; i += in_flight * height) {
      Vector<T, N> vectors[in_flight];
#pragma unroll
      for (int j = 0; j < in_flight; ++j) {
        const std::int64_t at = i + j * height;
        vectors[j] = at < end ? Vector<T, N>::load(x + base + problem.reduced.offset(at)) : Vector<T, N>::zero();
      }
      if constexpr (InnerKept) {
        add_squares(vectors, sums);
      } else {
#pragma unroll
        for (int j = 0; j < in_flight; ++j) sums[0] += vectors[j].sum_of_squares();
      }
    }
    if constexpr (InnerKept) {
#pragma unroll
      for (int s = 0; s < S; ++s) partial[ty][tx * S + s] = sums[s];
      __syncthreads();
      for (int i = static_cast<int>(threadIdx.x); i < width * S; i += strided_threads) {
        float sum = 0;
#pragma unroll
        for (int row = 0; row < height; ++row) sum += partial[row][i];
        totals[i] = sum;
      }
    } else {
      const float sum = block_sum(sums[0], of_warps);
      if (threadIdx.x == 0) totals[0] = sum;
    }
    __syncthreads();
  }

  // A thread holds the sums of S adjacent vectors; totals[i] belongs to vector tile * width * S + i.
  const std::int64_t first_vector = tile * width * S;
  const std::int64_t vector_count = problem.kept_count * S;
  if (step == StridedStep::sum) {
    for (int i = static_cast<int>(threadIdx.x); i < width * S && first_vector + i < vector_count;
         i += strided_threads) {
      problem.partials[(first_vector + i) * problem.splits + split] = totals[i];
    }
    return;
  }
  if (step == StridedStep::scale) {
    if constexpr (InnerKept) {
      for (int i = static_cast<int>(threadIdx.x); i < width * S && first_vector + i < vector_count;
           i += strided_threads) {
        const float* partials = problem.partials + (first_vector + i) * problem.splits;
        float sum = 0;
#pragma unroll 8
        for (int s = 0; s < problem.splits; ++s) sum += partials[s];
        totals[i] = sum;
      }
    } else {
      float mine = 0;
      for (int s = static_cast<int>(threadIdx.x); s < problem.splits; s += strided_threads) {
        mine += problem.partials[first_vector * problem.splits + s];
      }
      const float sum = block_sum(mine, of_warps);
      if (threadIdx.x == 0) totals[0] = sum;
    }
    __syncthreads();
  }

  float factors[S];
#pragma unroll
  for (int s = 0; s < S; ++s) factors[s] = normalizer.factor<T>(totals[tx * S + s]);
  for (std::int64_t i = begin; i < end; i += in_flight * height) {
    Vector<T, N> vectors[in_flight];
    std::int64_t offsets[in_flight];
#pragma unroll
    for (int j = 0; j < in_flight; ++j) {
      const std::int64_t at = i + j * height;
      if (at >= end) continue;
      offsets[j] = base + problem.reduced.offset(at);
      vectors[j] = Vector<T, N>::load(x + offsets[j]);
    }
#pragma unroll
    for (int j = 0; j < in_flight; ++j) {
      if (i + j * height >= end) continue;
      if constexpr (InnerKept)
        weights.scale(vectors[j], factors, weights.weight(i + j * height)).store(y + offsets[j]);
      else
        weights.scale_run(vectors[j], factors[0], (i + j * height) * N, problem.reduced_count * N)
            .store(y + offsets[j]);
    }
  }
}

}  // namespace kernels

/// Returns whether the innermost dimension is kept.
[[nodiscard]] inline bool inner_is_kept(const ReductionPlan& plan) {
  const int rank = plan.kept_extents.rank();
  return rank > 0 && plan.kept_strides[rank - 1] == 1;
}

/// Normalizes a tensor. If `splits` is greater than 1, the sums and the scaling are two launches, and `partials` must
/// have room for a row of `splits` floats for each vector of the tensor.
template <class T, int N>
[[nodiscard]] Status run_strided(const char* what, const T* x, T* y, const ReductionPlan& plan,
                                 const Normalizer& normalizer, const ChannelWeights& weights, int splits,
                                 float* partials, const CudaContext& context) {
  using namespace kernels;
  const bool inner_kept = inner_is_kept(plan);
  const Strided problem{.kept = StridedLoop::make(plan.kept_extents, plan.kept_strides, inner_kept ? N : 1),
                        .reduced = StridedLoop::make(plan.reduced_extents, plan.reduced_strides, inner_kept ? 1 : N),
                        .kept_count = inner_kept ? plan.kept_count / N : plan.kept_count,
                        .reduced_count = inner_kept ? plan.reduced_count : plan.reduced_count / N,
                        .splits = std::max(splits, 1),
                        .partials = partials};
  const std::int64_t tiles = ceil_divide(problem.kept_count, inner_kept ? 32 : 1);
  const Grid grid{tiles * problem.splits, strided_threads};
  auto* kernel = inner_kept ? strided<T, N, true> : strided<T, N, false>;
  const auto run = [&](StridedStep step) {
    return launch(what, kernel, grid, context, x, y, problem, step, normalizer, weights);
  };
  if (splits <= 1) return run(StridedStep::everything);
  if (Status status = run(StridedStep::sum); !status.ok()) return status;
  return run(StridedStep::scale);
}

}  // namespace graft

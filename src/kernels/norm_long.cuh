// Euclidean norms of vectors that no cluster holds, each lying in one piece: read twice in one launch.
#pragma once

#include <cub/block/block_reduce.cuh>

#include "kernels/launch.cuh"
#include "kernels/normalizer.cuh"
#include "kernels/two_steps.cuh"

namespace graft {

namespace detail {

inline constexpr int long_threads = 256;
inline constexpr int long_in_flight = 8;  // vectors that a thread reads before it uses the first

/// Sums of squares of all parts at `sums`.
template <class T, int N, class Weights>
__global__ void __launch_bounds__(long_threads) long_rows(const T* x, T* y, std::int64_t length, TwoSteps steps,
                                                          float* sums, Normalizer normalizer, Weights weights) {
  using Reduce = cub::BlockReduce<float, long_threads>;
  __shared__ typename Reduce::TempStorage storage;
  __shared__ float shared_factor;
  const TwoSteps::Turn turn = steps.take_turn();
  const std::int64_t base = turn.row * length + turn.offset;
  const T* from = x + base;
  T* to = y + base;
  const std::int64_t valid = ::min(steps.share, length - turn.offset);
  constexpr int step = long_threads * N;
  const std::int64_t first = static_cast<int>(threadIdx.x) * N;

  Vector<T, N> vectors[long_in_flight];
  const auto load = [&](std::int64_t begin) {
#pragma unroll
    for (int j = 0; j < long_in_flight; ++j) {
      const std::int64_t at = begin + j * step;
      vectors[j] = at < valid ? Vector<T, N>::load(from + at) : Vector<T, N>::zero();
    }
  };
  load(first);
  if (turn.reduces) {
    float sum = 0;
    for (std::int64_t begin = first;;) {
#pragma unroll
      for (int j = 0; j < long_in_flight; ++j) sum += vectors[j].sum_of_squares();
      begin += long_in_flight * step;
      if (begin >= valid) break;
      load(begin);
    }
    sum = Reduce(storage).Sum(sum);
    if (threadIdx.x != 0) return;
    sums[turn.part] = sum;
    steps.tell(turn);
    return;
  }
  steps.wait_for_row(turn);
  float sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < steps.parts; i += long_threads) {
    sum += __ldcg(sums + turn.row * steps.parts + i);
  }
  sum = Reduce(storage).Sum(sum);
  if (threadIdx.x == 0) shared_factor = normalizer.factor<T>(sum);
  __syncthreads();
  const float factor = shared_factor;
  for (std::int64_t begin = first;;) {
#pragma unroll
    for (int j = 0; j < long_in_flight; ++j) {
      const std::int64_t at = begin + j * step;
      if (at < valid) weights.scale_run(vectors[j], factor, turn.offset + at, length).store_streaming(to + at);
    }
    begin += long_in_flight * step;
    if (begin >= valid) break;
    load(begin);
  }
}

}  // namespace detail

/// `count` rows of `length` elements, at most two_steps_most_rows.
template <class T, int N, class Weights>
[[nodiscard]] Status run_long_rows(const char* what, const T* x, T* y, std::int64_t count, std::int64_t length,
                                   const Normalizer& normalizer, const Weights& weights, void* workspace,
                                   std::size_t workspace_bytes, const DeviceTraits& device,
                                   const CudaContext& context) {
  using namespace detail;
  TwoSteps steps{};
  float* sums = nullptr;
  constexpr std::int64_t turn = std::int64_t{long_threads} * N * long_in_flight;
  if (Status status =
          start_two_steps(what, count, length, turn, workspace, workspace_bytes, device, context, steps, sums);
      !status.ok()) {
    return status;
  }
  const Grid grid{std::int64_t{2} * steps.all_parts, long_threads};
  return launch(what, long_rows<T, N, Weights>, grid, context, x, y, length, steps, sums, normalizer, weights);
}

}  // namespace graft

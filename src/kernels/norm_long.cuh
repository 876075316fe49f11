// Euclidean norms of contiguous vectors that are too long for a cluster. One launch reads them twice.
#pragma once

#include "kernels/launch.cuh"
#include "kernels/normalizer.cuh"
#include "kernels/reduce.cuh"
#include "kernels/row_vectors.cuh"
#include "kernels/two_steps.cuh"

namespace graft {

namespace kernels {

inline constexpr int long_threads = 256;
inline constexpr int long_in_flight = 8;  // The number of vectors that a thread loads before it uses the first one.

/// Normalizes rows in one launch: blocks write the sum of squares of each part of a row to `sums`, which is scratch
/// memory with one float per part, and then scale the parts. Parts begin at multiples of N elements, even where rows do
/// not.
template <class T, int N, RowForm Form>
__global__ void __launch_bounds__(long_threads)
    long_rows(const T* x, T* y, std::int64_t rows, std::int64_t length, TwoSteps steps, float* sums,
              Normalizer normalizer, ChannelWeights weights) {
  __shared__ float partial[long_threads / 32];
  __shared__ float shared_factor;
  const TwoSteps::Turn turn = steps.take_turn();
  const std::int64_t begin_of_row = turn.row * length;
  const int shift = Form == RowForm::shifted ? static_cast<int>(begin_of_row & (N - 1)) : 0;
  const std::int64_t valid = ::min(steps.share, length + shift - turn.offset);
  constexpr int step = long_threads * N;
  const std::int64_t first = static_cast<int>(threadIdx.x) * N;
  const auto place_of = [&](std::int64_t at) {
    const std::int64_t element = turn.offset + at - shift;
    return RowVector{.at = begin_of_row + element,
                     .element = 0,
                     .begin = element < 0 ? shift : 0,
                     .end = static_cast<int>(::min(length - element, std::int64_t{N})),
                     .exists = at < valid};
  };

  Vector<T, N> vectors[long_in_flight];
  const auto load = [&](std::int64_t begin) {
#pragma unroll
    for (int j = 0; j < long_in_flight; ++j) {
      vectors[j] = place_of(begin + j * step).template load<T, N, Form>(x, rows * length);
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
    sum = block_sum(sum, partial);
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
  sum = block_sum(sum, partial);
  if (threadIdx.x == 0) shared_factor = normalizer.factor<T>(sum);
  __syncthreads();
  const float factor = shared_factor;
  for (std::int64_t begin = first;;) {
#pragma unroll
    for (int j = 0; j < long_in_flight; ++j) {
      const RowVector place = place_of(begin + j * step);
      if (!place.exists) continue;
      const auto result = weights.scale_run(vectors[j], factor, place.at - begin_of_row, length);
      place.template store<T, N, Form>(y, result);
    }
    begin += long_in_flight * step;
    if (begin >= valid) break;
    load(begin);
  }
}

}  // namespace kernels

/// Normalizes `count` rows of `length` elements; `count` is at most two_steps_most_rows().
template <class T, int N, RowForm Form>
[[nodiscard]] Status run_long_rows(const char* what, const T* x, T* y, std::int64_t count, std::int64_t length,
                                   const Normalizer& normalizer, const ChannelWeights& weights, void* workspace,
                                   std::size_t workspace_bytes, const DeviceTraits& device,
                                   const CudaContext& context) {
  using namespace kernels;
  TwoSteps steps{};
  float* sums = nullptr;
  constexpr std::int64_t turn = std::int64_t{long_threads} * N * long_in_flight;
  if (Status status = start_two_steps(what, count, row_vectors(length, N) * N, turn, workspace, workspace_bytes, device,
                                      context, steps, sums);
      !status.ok()) {
    return status;
  }
  const Grid grid{std::int64_t{2} * steps.all_parts, long_threads};
  return launch(what, long_rows<T, N, Form>, grid, context, x, y, count, length, steps, sums, normalizer, weights);
}

}  // namespace graft

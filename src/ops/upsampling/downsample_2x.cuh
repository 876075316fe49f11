// Linear resampling to half the size along rows and columns with half_pixel coordinates: the mean of four elements.
#pragma once

#include "ops/upsampling/task.cuh"

namespace graft::ops {
namespace detail {

inline constexpr int downsample_2x_threads = 256;

/// Halves the size along both axes. A thread computes half a vector of each of R rows of y.
template <class T, int R>
__global__ void __launch_bounds__(downsample_2x_threads) downsample_2x(const T* x, T* y, const UpsamplingTask task) {
  constexpr bool is_i8 = std::is_same_v<T, std::int8_t>;
  constexpr int N = widest<T>;
  const unsigned item = blockIdx.x * downsample_2x_threads + threadIdx.x;
  if (item >= task.items) return;
  const Share share = Share::quick(item, task);
  const int first = share.strip * R;
  const T* from = x + (share.plane * task.y.in + 2 * first) * task.in_row + share.group * N;
  T* to = y + (share.plane * task.y.out + first) * task.out_row + share.group * (N / 2);
  Vector<T, N> loaded[2 * R];
#pragma unroll
  for (int j = 0; j < 2 * R; ++j) {
    if (first + j / 2 < task.y.out) loaded[j] = Vector<T, N>::load(from + j * task.in_row);
  }
#pragma unroll
  for (int j = 0; j < R; ++j) {
    if (first + j >= task.y.out) break;
    float upper[N];
    float lower[N];
    loaded[2 * j].unpack(upper);
    loaded[2 * j + 1].unpack(lower);
    float means[N / 2];
#pragma unroll
    for (int i = 0; i < N / 2; ++i) {
      if constexpr (is_i8) {
        means[i] = ((upper[2 * i] + upper[2 * i + 1]) + (lower[2 * i] + lower[2 * i + 1])) * (0.25F * task.ratio);
      } else {
        means[i] = between<false>(between<false>(upper[2 * i], upper[2 * i + 1], 0.5F),
                                  between<false>(lower[2 * i], lower[2 * i + 1], 0.5F), 0.5F);
      }
    }
    Vector<T, N / 2>::pack(means).store_streaming(to + j * task.out_row);
  }
}

}  // namespace detail
}  // namespace graft::ops

// Upsampling to the nearest element, by any factor. A thread computes its columns row by row and reads x only when the
// input row changes.
#pragma once

#include "ops/upsampling/task.cuh"

namespace graft::ops {
namespace detail {

inline constexpr int nearest_threads = 256;

/// Computes N columns of one channel (V == 1) or V channels of one column (N == 1) of y per thread, in several rows.
template <class T, int N, int V>
__global__ void __launch_bounds__(nearest_threads) nearest(const T* x, T* y, const UpsamplingTask task) {
  static_assert(N == 1 || V == 1);
  constexpr bool is_i8 = std::is_same_v<T, std::int8_t>;
  constexpr int E = N * V;
  const std::int64_t item = static_cast<std::int64_t>(blockIdx.x) * nearest_threads + threadIdx.x;
  if (item >= task.items) return;
  const Share share = Share::of(item, task);
  const std::int64_t first_column = task.parts == 1 ? share.group : divide(share.group, task.parts);
  const int column = static_cast<int>(first_column) * N;
  const int channel = static_cast<int>(share.group - first_column * task.parts) * V;

  int at[N];
  IncrementalAxis::Place place = task.x.at(column);
#pragma unroll
  for (int n = 0; n < N; ++n) {
    at[n] = task.x.clamp(place.index) * task.pitch;
    task.x.advance(place);
  }
  const int slice = task.z.clamp(task.z.at(share.slice).index);
  const T* from = x + (share.plane * task.z.in + slice) * task.y.in * task.in_row + channel;
  const int channels_left = task.channels_from(share.plane, channel);
  const int begin = share.strip * task.rows;
  const int end = ::min(begin + task.rows, task.y.out);
  T* to = y + ((share.plane * task.z.out + share.slice) * task.y.out + begin) * task.out_row +
          static_cast<std::int64_t>(column) * task.pitch + channel;
  place = task.y.at(begin);
  int held_row = -1;
  Vector<T, E> held = Vector<T, E>::zero();
  for (int row = begin; row < end; ++row, to += task.out_row) {
    const int wanted = task.y.clamp(place.index);
    if (wanted != held_row) {
      held_row = wanted;
      const T* source = from + wanted * task.in_row;
      if constexpr (V > 1) {
        held = Vector<T, V>::load(source + at[0]);
      } else {
        T loaded[N];
#pragma unroll
        for (int n = 0; n < N; ++n) loaded[n] = source[at[n]];
        held = Vector<T, N>::of(loaded);
      }
      if constexpr (is_i8) {
        if constexpr (E > 1) {
          if (task.ratio != 1.F) held = held.times(task.ratio);
        } else {
          held.raw = quantize_device(static_cast<float>(held.raw) * task.x_scale, task.y_scale);
        }
      }
      if (V > 1 || (E == 1 && task.pitch > 1)) held = held.first(channels_left);
    }
    held.store_streaming(to);
    task.y.advance(place);
  }
}

}  // namespace detail
}  // namespace graft::ops

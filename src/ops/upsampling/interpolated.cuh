// Upsampling by linear or cubic interpolation, by any factor. A thread computes its columns row by row and keeps the
// input rows that it needs, interpolated along x (and z), in registers: each input row is read once for a whole strip.
#pragma once

#include "ops/upsampling/task.cuh"

namespace graft::ops {
namespace detail {

inline constexpr int interpolated_threads = 256;

/// Computes the weights of `Taps` neighbors of a position, the first of which lies Taps / 2 - 1 elements before the
/// element at the rounded-down position. `f` is the fraction of the position, `a` the parameter of cubic interpolation.
template <int Taps>
__device__ void weigh(float f, float a, float (&weights)[Taps]) {
  const float g = 1.F - f;
  if constexpr (Taps == 2) {
    weights[0] = g;
    weights[1] = f;
  } else {
    // Keys' polynomials with their zeros factored out, so that nothing cancels.
    weights[0] = a * f * g * g;
    weights[1] = g * (1.F + f - (a + 2.F) * f * f);
    weights[2] = f * (1.F + g - (a + 2.F) * g * g);
    weights[3] = a * g * f * f;
  }
}

/// The indices and weights of the neighbors of a position along an axis. If the position is an integer, all neighbors
/// are the element at this position, with equal weights. Other neighbors with a weight of 0 would yield NaN if they
/// were infinite.
template <int Taps>
struct TapsAlong {
  int index[Taps];
  float weight[Taps];

  __device__ TapsAlong(const IncrementalAxis& axis, const IncrementalAxis::Place& place, float a) {
    const bool whole = place.remainder == 0;
    weigh<Taps>(axis.fraction(place), a, weight);
#pragma unroll
    for (int t = 0; t < Taps; ++t) {
      index[t] = axis.clamp(whole ? place.index : place.index + t - (Taps / 2 - 1));
      if (whole) weight[t] = 1.F / Taps;
    }
  }
};

/// Computes V channels of one column of y per thread, in several rows.
template <class T, int Taps, int V>
__global__ void __launch_bounds__(interpolated_threads, Taps == 2 && V == 1 ? 4 : 1)
    interpolated(const T* x, T* y, const UpsamplingTask task) {
  constexpr bool is_i8 = std::is_same_v<T, std::int8_t>;
  constexpr int behind = Taps / 2;  // the number of taps after the position
  const std::int64_t item = static_cast<std::int64_t>(blockIdx.x) * interpolated_threads + threadIdx.x;
  if (item >= task.items) return;
  const Share share = Share::of(item, task);
  const std::int64_t first_column = task.parts == 1 ? share.group : divide(share.group, task.parts);
  const auto column = static_cast<int>(first_column);
  const int channel = static_cast<int>(share.group - first_column * task.parts) * V;

  IncrementalAxis::Place place = task.x.at(column);
  const TapsAlong<Taps> along_x(task.x, place, task.cubic_a);
  int at[Taps];
  float weight[Taps];
#pragma unroll
  for (int t = 0; t < Taps; ++t) {
    at[t] = along_x.index[t] * task.pitch;
    weight[t] = along_x.weight[t];
    if constexpr (is_i8) weight[t] *= V == 1 ? task.x_scale : task.ratio;
  }
  const IncrementalAxis::Place slice = task.z.at(share.slice);
  const TapsAlong<Taps> along_z(task.z, slice, task.cubic_a);
  const std::int64_t in_slice = task.in_row * task.y.in;
  const T* volume = x + share.plane * task.z.in * in_slice + channel;

  const auto load_row = [&](int row, float(&result)[V]) {
    const T* rows = volume + row * task.in_row;
#pragma unroll
    for (int k = 0; k < Taps; ++k) {
      if (k > 0 && slice.remainder == 0) break;
      const T* from = rows + along_z.index[k] * in_slice;
      Vector<T, V> loaded[Taps];
#pragma unroll
      for (int t = 0; t < Taps; ++t) loaded[t] = Vector<T, V>::load(from + at[t]);
      float values[V];
#pragma unroll
      for (int t = 0; t < Taps; ++t) {
        float elements[V];
        loaded[t].unpack(elements);
#pragma unroll
        for (int v = 0; v < V; ++v) {
          values[v] = t == 0 ? weight[0] * elements[v] : fmaf(weight[t], elements[v], values[v]);
        }
      }
#pragma unroll
      for (int e = 0; e < V; ++e) {
        if (slice.remainder == 0)
          result[e] = values[e];
        else
          result[e] = k == 0 ? along_z.weight[0] * values[e] : fmaf(along_z.weight[k], values[e], result[e]);
      }
    }
  };

  const int channels_left = task.channels_from(share.plane, channel);
  const int begin = share.strip * task.rows;
  const int end = ::min(begin + task.rows, task.y.out);
  T* to = y + ((share.plane * task.z.out + share.slice) * task.y.out + begin) * task.out_row +
          static_cast<std::int64_t>(column) * task.pitch + channel;
  const int ahead = task.y.identity ? 0 : behind;
  const int needed = task.y.identity ? 1 : Taps;
  float held[Taps][V];  // input rows have - Taps + 1 .. have
  place = task.y.at(begin);
  int have = place.index + ahead - needed;
  for (int row = begin; row < end; ++row, to += task.out_row) {
    const int last = place.index + ahead;
    have = ::max(have, last - needed);
    while (have < last) {
      ++have;
#pragma unroll
      for (int t = 0; t + 1 < Taps; ++t) {
#pragma unroll
        for (int e = 0; e < V; ++e) held[t][e] = held[t + 1][e];
      }
      load_row(task.y.clamp(have), held[Taps - 1]);
    }
    float result[V];
    if (place.remainder == 0) {
#pragma unroll
      for (int e = 0; e < V; ++e) result[e] = task.y.identity ? held[Taps - 1][e] : held[Taps - 1 - behind][e];
    } else {
      float weights[Taps];
      weigh<Taps>(task.y.fraction(place), task.cubic_a, weights);
#pragma unroll
      for (int e = 0; e < V; ++e) {
        result[e] = weights[0] * held[0][e];
#pragma unroll
        for (int t = 1; t < Taps; ++t) result[e] = fmaf(weights[t], held[t][e], result[e]);
      }
    }
    if constexpr (V == 1 && is_i8) {
      *to = task.pitch > 1 && channels_left <= 0 ? std::int8_t{0} : quantize_device(result[0], task.y_scale);
    } else {
      Vector<T, V> packed = Vector<T, V>::pack(result);
      if (V > 1 || task.pitch > 1) packed = packed.first(channels_left);
      packed.store_streaming(to);
    }
    task.y.advance(place);
  }
}

}  // namespace detail
}  // namespace graft::ops

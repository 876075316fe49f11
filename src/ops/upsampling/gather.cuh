// Upsampling by any method and factor: each element of y is computed from its neighbors in x, which stay in the L1
// cache for the next elements. A thread computes elements of y that are contiguous in memory, whatever rows they belong
// to, so that narrow images and small tensors keep all lanes busy.
#pragma once

#include "ops/upsampling/interpolated.cuh"
#include "ops/upsampling/short_axis.cuh"

namespace graft::ops {
namespace detail {

struct GatherTask {
  ShortAxis z;
  ShortAxis y;
  ShortAxis x;
  unsigned count = 0;   ///< The number of vectors of V elements in y.
  bool is_flat = true;  ///< Whether there is a single slice.
  int parts = 1;        ///< The number of vectors in a column.
  int in_row = 0;       ///< The number of elements in a row of x.
  int in_slice = 0;
  std::int64_t in_volume = 0;
  QuickDivision by_parts = {};
  QuickDivision by_row = {};  ///< The divisor is the number of columns of y.
  QuickDivision by_height = {};
  QuickDivision by_depth = {};
  int pitch = 1;
  // In channel-vector layouts, `blocks` ranges of `pitch` channels contain `channels` channels and padding.
  int blocks = 1;
  int channels = 0;
  float cubic_a = 0;
  float ratio = 1;

  /// Returns whether all numbers of the task fit into 31 bits: the positions along each axis, and the numbers of
  /// elements of y (`outputs`) and of one plane of x (`volume`).
  [[nodiscard]] static bool fits(const std::array<SampledAxis, 3>& axes, std::int64_t outputs, std::int64_t volume) {
    return std::all_of(axes.begin(), axes.end(), ShortAxis::fits) && outputs < UpsamplingTask::most_quick_items &&
           volume < UpsamplingTask::most_quick_items;
  }
};

/// The indices and weights of the neighbors of a position along an axis. If the position is an integer, all neighbors
/// are the element at this position, with equal weights. Other neighbors with a weight of 0 would yield NaN if they
/// were infinite.
template <int Taps>
struct GatherTaps {
  int index[Taps];
  float weight[Taps];

  __device__ GatherTaps(const ShortAxis& axis, const ShortAxis::Place& place, float a) {
    if constexpr (Taps == 1) {
      index[0] = axis.clamp(place.index);
      weight[0] = 1;
    } else {
      const bool is_whole = place.is_whole();
      weigh<Taps>(axis.fraction(place), a, weight);
#pragma unroll
      for (int t = 0; t < Taps; ++t) {
        index[t] = axis.clamp(is_whole ? place.index : place.index + t - (Taps / 2 - 1));
        weight[t] = is_whole ? 1.F / Taps : weight[t];
      }
    }
  }
};

/// Computes N vectors of V channels of y per thread; N or V is 1. Taps is the number of neighbors along an axis: 1 for
/// nearest, 2 for linear, 4 for cubic interpolation. Axes is the number of axes, from x on, that are interpolated. With
/// 1, the rows of y are the rows of x in their order, and the parameters of the other axes are not read (on an H200 a
/// kernel takes 65 ns for each 64 bytes of parameters that it reads).
template <class T, int Taps, int Axes, int V, int N>
__global__ void __launch_bounds__(spread_most_threads)
    gather(const T* x, T* y, const __grid_constant__ GatherTask task) {
  static_assert(N == 1 || V == 1);
  static_assert(Axes > 1 || V == 1);
  constexpr bool is_i8 = std::is_same_v<T, std::int8_t>;
  constexpr bool deep = Axes == 3;
  constexpr int slices = deep ? Taps : 1;
  constexpr int lines = Axes > 1 ? Taps : 1;
  const unsigned first = (blockIdx.x * blockDim.x + threadIdx.x) * N;
  if (first >= task.count) return;
  const unsigned pixel = V == 1 ? first : task.by_parts(first);
  const int channel = V == 1 ? 0 : static_cast<int>(first - pixel * task.by_parts.divisor) * V;
  unsigned line = task.by_row(pixel);
  int column = static_cast<int>(pixel - line * task.by_row.divisor);

  const T* from[slices][lines];
  float weight_of_row[slices][lines];
  unsigned volume = 0;
  const auto find_line = [&] {
    if constexpr (Axes == 1) {
      from[0][0] = x + static_cast<std::int64_t>(line) * task.in_row;
      weight_of_row[0][0] = 1;
      return;
    }
    const unsigned section = task.by_height(line);
    const int row = static_cast<int>(line - section * task.by_height.divisor);
    const GatherTaps<lines> rows(task.y, task.y.at(row), task.cubic_a);
    const bool is_flat = !deep && task.is_flat;
    volume = is_flat ? section : task.by_depth(section);
    const T* base = x + volume * task.in_volume + channel;
    if constexpr (deep) {
      const int slice = static_cast<int>(section - volume * task.by_depth.divisor);
      const GatherTaps<Taps> along(task.z, task.z.at(slice), task.cubic_a);
#pragma unroll
      for (int k = 0; k < slices; ++k) {
#pragma unroll
        for (int t = 0; t < lines; ++t) {
          from[k][t] = base + along.index[k] * task.in_slice + rows.index[t] * task.in_row;
          weight_of_row[k][t] = along.weight[k] * rows.weight[t];
        }
      }
    } else {
      if (!is_flat) {
        const int slice = static_cast<int>(section - volume * task.by_depth.divisor);
        base += task.z.clamp(task.z.at(slice).index) * task.in_slice;
      }
#pragma unroll
      for (int t = 0; t < lines; ++t) {
        from[0][t] = base + rows.index[t] * task.in_row;
        weight_of_row[0][t] = rows.weight[t];
      }
    }
  };
  find_line();

  Vector<T, V> loaded[N][slices][lines][Taps];
  float weights[N][slices][lines][Taps];
  ShortAxis::Place place = task.x.at(column);
  const int valid = static_cast<int>(::min(task.count - first, static_cast<unsigned>(N)));
#pragma unroll
  for (int n = 0; n < N; ++n) {
    if (n > 0 && column >= static_cast<int>(task.by_row.divisor)) {
      column = 0;
      place = task.x.at(0);
      ++line;
      if (n < valid) find_line();
    }
    const GatherTaps<Taps> along(task.x, place, task.cubic_a);
#pragma unroll
    for (int k = 0; k < slices; ++k) {
#pragma unroll
      for (int t = 0; t < lines; ++t) {
#pragma unroll
        for (int c = 0; c < Taps; ++c) {
          loaded[n][k][t][c] = Vector<T, V>::load(from[k][t] + along.index[c] * (V == 1 ? 1 : task.pitch));
          weights[n][k][t][c] = weight_of_row[k][t] * along.weight[c];
        }
      }
    }
    ++column;
    if (n + 1 < N) task.x.advance(place);
  }

  T* to = y + static_cast<std::int64_t>(first) * V;
  Vector<T, N * V> result;
  if constexpr (Taps == 1 && !is_i8) {
#pragma unroll
    for (int n = 0; n < N; ++n) {
      if constexpr (V > 1)
        result = loaded[0][0][0][0];
      else
        reinterpret_cast<T*>(&result.raw)[n] = loaded[n][0][0][0].raw;
    }
  } else {
    float sums[N * V];
#pragma unroll
    for (int n = 0; n < N; ++n) {
#pragma unroll
      for (int k = 0; k < slices; ++k) {
#pragma unroll
        for (int t = 0; t < lines; ++t) {
#pragma unroll
          for (int c = 0; c < Taps; ++c) {
            float values[V];
            loaded[n][k][t][c].unpack(values);
#pragma unroll
            for (int v = 0; v < V; ++v) {
              float& sum = sums[n * V + v];
              if (Taps == 1)
                sum = values[v];
              else
                sum = k + t + c == 0 ? weights[n][0][0][0] * values[v] : fmaf(weights[n][k][t][c], values[v], sum);
            }
          }
        }
      }
#pragma unroll
      for (int v = 0; v < V; ++v) {
        if constexpr (is_i8) sums[n * V + v] *= task.ratio;
      }
    }
    result = Vector<T, N * V>::pack(sums);
  }
  if constexpr (V > 1) {
    const int block = task.blocks == 1 ? 0 : static_cast<int>(volume % static_cast<unsigned>(task.blocks));
    result = result.first(task.channels - block * task.pitch - channel);
  }
  if (N == 1 || valid == N) {
    result.store(to);
  } else {
    for (int n = 0; n < valid; ++n) to[n] = reinterpret_cast<const T*>(&result.raw)[n];
  }
}

}  // namespace detail
}  // namespace graft::ops

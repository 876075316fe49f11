// Upsampling by cubic interpolation, by any factor, in the linear layout. A warp computes a piece of one output row
// after the other: it first sums up the weighted input rows in shared memory, where gathering the neighbors of each
// column is cheap.
#pragma once

#include "ops/upsampling/interpolated.cuh"

namespace graft::ops {
namespace detail {

inline constexpr int separable_threads = 128;
inline constexpr int separable_warps = separable_threads / 32;
inline constexpr int separable_columns = 4;  ///< The number of columns that a lane computes in each row.

struct SeparableTask {
  UpsamplingTask task;
  std::int64_t lines;  ///< The number of rows in the output.
  int lines_each;      ///< The number of rows that a warp computes.
  int pieces;          ///< The number of pieces that a row has; a piece is 32 * separable_columns wide.
  int window;          ///< The maximum number of elements of an input row that a piece needs.
};

/// Computes y by cubic interpolation: for each row of y, the rows of x are combined to one row in shared memory, from
/// which the columns are interpolated. Stores N neighboring columns at once. If Wide is true, rows are read in vectors
/// of 128 bits.
template <class T, int N, bool Wide>
__global__ void __launch_bounds__(separable_threads) separable(const T* x, T* y, const SeparableTask separable) {
  constexpr bool is_i8 = std::is_same_v<T, std::int8_t>;
  constexpr int Taps = 4;
  constexpr int C = separable_columns;
  constexpr int G = C / N;  // groups of N columns, 32 * N columns apart
  constexpr int W = Wide ? widest<T> : 1;
  extern __shared__ float4 shared[];
  const UpsamplingTask& task = separable.task;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  float* row_sum = reinterpret_cast<float*>(shared) + warp * separable.window;
  const std::int64_t item = static_cast<std::int64_t>(blockIdx.x) * separable_warps + warp;
  const std::int64_t share = separable.pieces == 1 ? item : divide(item, separable.pieces);
  const int first = static_cast<int>(item - share * separable.pieces) * 32 * C;
  std::int64_t line = share * separable.lines_each;
  const std::int64_t end = ::min(line + separable.lines_each, separable.lines);
  if (line >= end) return;

  const int begin_x = task.x.clamp(task.x.at(first).index - (Taps / 2 - 1)) / W * W;
  const int end_x = task.x.clamp(task.x.at(::min(first + 32 * C, task.x.out) - 1).index + Taps / 2) + 1;
  int at[G][N][Taps];
  float weight[G][N][Taps];
#pragma unroll
  for (int g = 0; g < G; ++g) {
    const int column = first + (g * 32 + lane) * N;
    IncrementalAxis::Place place = task.x.at(::min(column, task.x.out - 1));
#pragma unroll
    for (int n = 0; n < N; ++n) {
      const TapsAlong<Taps> taps(task.x, place, task.cubic_a);
#pragma unroll
      for (int t = 0; t < Taps; ++t) {
        at[g][n][t] = ::min(taps.index[t], end_x - 1) - begin_x;
        weight[g][n][t] = taps.weight[t];
        if constexpr (is_i8) weight[g][n][t] *= N == 1 ? task.x_scale : task.ratio;
      }
      task.x.advance(place);
    }
  }

  const std::int64_t in_slice = task.in_row * task.y.in;
  const std::int64_t section = divide(line, task.y.out);
  int row = static_cast<int>(line - section * task.y.out);
  std::int64_t plane = divide(section, task.z.out);
  int slice = static_cast<int>(section - plane * task.z.out);
  IncrementalAxis::Place along_y = task.y.at(row);
  IncrementalAxis::Place along_z = task.z.at(slice);
  T* to = y + line * task.out_row + first;
  for (; line < end; ++line, to += task.out_row) {
    const T* volume = x + plane * task.z.in * in_slice + begin_x;
    const TapsAlong<Taps> ys(task.y, along_y, task.cubic_a);
    const TapsAlong<Taps> zs(task.z, along_z, task.cubic_a);
    const bool one_row = along_y.remainder == 0;
    const bool one_slice = along_z.remainder == 0;
    for (int v = lane * W; v < end_x - begin_x; v += 32 * W) {
      float sum[W];
#pragma unroll
      for (int k = 0; k < Taps; ++k) {
        if (k > 0 && one_slice) break;
        Vector<T, W> loaded[Taps];
#pragma unroll
        for (int t = 0; t < Taps; ++t) {
          if (t == 0 || !one_row) {
            loaded[t] = Vector<T, W>::load(volume + zs.index[k] * in_slice + ys.index[t] * task.in_row + v);
          }
        }
#pragma unroll
        for (int t = 0; t < Taps; ++t) {
          if (t > 0 && one_row) break;
          const float factor = (one_slice ? 1.F : zs.weight[k]) * (one_row ? 1.F : ys.weight[t]);
          float values[W];
          loaded[t].unpack(values);
#pragma unroll
          for (int w = 0; w < W; ++w) sum[w] = k + t == 0 ? factor * values[w] : fmaf(factor, values[w], sum[w]);
        }
      }
      if constexpr (W == 1) {
        row_sum[v] = sum[0];
      } else {
#pragma unroll
        for (int w = 0; w < W; w += 4) {
          *reinterpret_cast<float4*>(row_sum + v + w) = make_float4(sum[w], sum[w + 1], sum[w + 2], sum[w + 3]);
        }
      }
    }
    __syncwarp();
#pragma unroll
    for (int g = 0; g < G; ++g) {
      if (first + g * 32 * N >= task.x.out) break;
      float result[N];
#pragma unroll
      for (int n = 0; n < N; ++n) {
        result[n] = weight[g][n][0] * row_sum[at[g][n][0]];
#pragma unroll
        for (int t = 1; t < Taps; ++t) result[n] = fmaf(weight[g][n][t], row_sum[at[g][n][t]], result[n]);
      }
      const int column = (g * 32 + lane) * N;
      if (first + column < task.x.out) {
        if constexpr (is_i8 && N == 1)
          to[column] = quantize_device(result[0], task.y_scale);
        else
          Vector<T, N>::pack(result).store_streaming(to + column);
      }
    }
    __syncwarp();
    task.y.advance(along_y);
    if (++row == task.y.out) {
      row = 0;
      along_y = task.y.at(0);
      task.z.advance(along_z);
      if (++slice == task.z.out) {
        slice = 0;
        along_z = task.z.at(0);
        ++plane;
      }
    }
  }
}

}  // namespace detail
}  // namespace graft::ops

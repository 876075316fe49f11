// Linear upsampling by any factor, in the linear layout. A warp computes contiguous columns of several planes, row by
// row. It keeps two rows of the input, interpolated along the row, and loads the input of the next output row before it
// computes the current one.
#pragma once

#include "ops/upsampling/short_axis.cuh"

namespace graft::ops {
namespace detail {

inline constexpr int line_buffer_threads = 128;

/// The two neighbors of a position along an axis. If the position is an integer, both are the element at this position,
/// with equal weights. Another neighbor with a weight of 0 would yield NaN if it were infinite.
struct Neighbours {
  int first;
  int second;
  float weight;  ///< The weight of the second neighbor.

  __device__ Neighbours(const ShortAxis& axis, const ShortAxis::Place& place)
      : first(axis.clamp(place.index)),
        second(axis.clamp(place.is_whole() ? place.index : place.index + 1)),
        weight(place.is_whole() ? 0.5F : axis.fraction(place)) {}
};

struct LineBufferTask {
  ShortAxis z;
  ShortAxis y;
  ShortAxis x;
  unsigned planes = 0;
  int rows = 1;                  ///< The number of rows of the output that a warp computes.
  std::int64_t blocks = 0;       ///< The number of blocks, less than 2^31.
  QuickDivision by_pieces = {};  ///< The divisor is the number of pieces of a row, which are 32 * N columns wide.
  QuickDivision by_strips = {};  ///< The divisor is the number of strips of as many rows as a block computes.
  QuickDivision by_slices = {};
  float ratio = 1;
};

/// Computes N columns of C consecutive planes of y per lane. If Deep is true, positions along z are interpolated as
/// well.
template <class T, int N, int C, bool Deep>
__global__ void __launch_bounds__(line_buffer_threads) line_buffer(const T* x, T* y, const LineBufferTask task) {
  constexpr bool is_i8 = std::is_same_v<T, std::int8_t>;
  constexpr int slices = Deep ? 2 : 1;
  struct Loaded {
    T elements[C][slices][2][N];
  };
  // These values are equal for the whole block, so that addresses are 32-bit offsets from a base in uniform registers.
  const unsigned line = task.by_pieces(blockIdx.x);
  const unsigned section = task.by_strips(line);
  const unsigned group = task.by_slices(section);
  const unsigned piece = blockIdx.x - line * task.by_pieces.divisor;
  const unsigned strip = line - section * task.by_strips.divisor;
  const int slice = static_cast<int>(section - group * task.by_slices.divisor);
  const std::int64_t in_plane = static_cast<std::int64_t>(task.z.in) * task.y.in * task.x.in;
  const Neighbours along_z(task.z, task.z.at(slice));
  const T* from[C][slices];
  T* to[C];
#pragma unroll
  for (int c = 0; c < C; ++c) {
    const unsigned plane = ::min(group * C + c, task.planes - 1);
#pragma unroll
    for (int k = 0; k < slices; ++k) {
      const int index = k == 0 ? along_z.first : along_z.second;
      from[c][k] = x + plane * in_plane + static_cast<std::int64_t>(index) * task.y.in * task.x.in;
    }
    to[c] = y + (static_cast<std::int64_t>(plane) * task.z.out + slice) * task.y.out * task.x.out;
  }

  const int begin = static_cast<int>(strip * (line_buffer_threads / 32) + threadIdx.x / 32) * task.rows;
  const int end = ::min(begin + task.rows, task.y.out);
  const int column = static_cast<int>(piece * 32 + threadIdx.x % 32) * N;
  if (begin >= end || column >= task.x.out) return;
  unsigned at[2][N];
  float weight[N];
  {
    ShortAxis::Place place = task.x.at(column);
#pragma unroll
    for (int n = 0; n < N; ++n) {
      const Neighbours neighbours(task.x, place);
      at[0][n] = static_cast<unsigned>(neighbours.first);
      at[1][n] = static_cast<unsigned>(neighbours.second);
      weight[n] = neighbours.weight;
      task.x.advance(place);
    }
  }
  const auto load = [&](int row) {
    Loaded loaded;
#pragma unroll
    for (int t = 0; t < 2; ++t) {
#pragma unroll
      for (int n = 0; n < N; ++n) {
        const unsigned offset = at[t][n] + static_cast<unsigned>(row) * static_cast<unsigned>(task.x.in);
#pragma unroll
        for (int c = 0; c < C; ++c) {
#pragma unroll
          for (int k = 0; k < slices; ++k) loaded.elements[c][k][t][n] = from[c][k][offset];
        }
      }
    }
    return loaded;
  };
  const auto along_row = [&](const Loaded& loaded, float(&result)[C][N]) {
#pragma unroll
    for (int c = 0; c < C; ++c) {
#pragma unroll
      for (int n = 0; n < N; ++n) {
        float values[slices];
#pragma unroll
        for (int k = 0; k < slices; ++k) {
          const auto& both = loaded.elements[c][k];
          values[k] = between<is_i8>(static_cast<float>(both[0][n]), static_cast<float>(both[1][n]), weight[n]);
        }
        result[c][n] = Deep ? between<is_i8>(values[0], values[slices - 1], along_z.weight) : values[0];
        if constexpr (is_i8) result[c][n] *= task.ratio;
      }
    }
  };

  ShortAxis::Place place = task.y.at(begin);
  int upper = task.y.clamp(place.index);
  int lower = task.y.clamp(place.index + 1);
  int held_lower = -1;  // The row in `below`.
  bool is_new_upper = true;
  bool is_new_lower = !place.is_whole();
  Loaded loaded_upper = load(upper);
  Loaded loaded_lower;
  if (is_new_lower) loaded_lower = load(lower);
  float above[C][N];
  float below[C][N];
  unsigned offset = static_cast<unsigned>(begin) * static_cast<unsigned>(task.x.out) + static_cast<unsigned>(column);
  for (int row = begin; row < end; ++row) {
    if (is_new_upper) along_row(loaded_upper, above);
    if (is_new_lower) {
      along_row(loaded_lower, below);
      held_lower = lower;
    }
    const bool is_whole = place.is_whole();
    const float f = task.y.fraction(place);

    bool moves_up = false;
    is_new_upper = is_new_lower = false;
    if (row + 1 < end) {
      task.y.advance(place);
      const int next_upper = task.y.clamp(place.index);
      lower = task.y.clamp(place.index + 1);
      moves_up = next_upper != upper && next_upper == held_lower;
      is_new_upper = next_upper != upper && !moves_up;
      is_new_lower = !place.is_whole() && lower != held_lower;
      if (is_new_upper) loaded_upper = load(next_upper);
      if (is_new_lower) loaded_lower = load(lower);
      upper = next_upper;
    }
#pragma unroll
    for (int c = 0; c < C; ++c) {
      float results[N];
#pragma unroll
      for (int n = 0; n < N; ++n) {
        results[n] = is_whole ? above[c][n] : between<is_i8>(above[c][n], below[c][n], f);
      }
      if (c == 0 || group * C + c < task.planes) Vector<T, N>::pack(results).store_streaming(to[c] + offset);
    }
    offset += static_cast<unsigned>(task.x.out);
    if (moves_up) {
#pragma unroll
      for (int c = 0; c < C; ++c) {
#pragma unroll
        for (int n = 0; n < N; ++n) above[c][n] = below[c][n];
      }
    }
  }
}

}  // namespace detail
}  // namespace graft::ops

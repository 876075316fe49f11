// Upsampling by exactly two along rows and columns, where neighbours are known without an index: output 2k lies between
// input k - 1 and k, output 2k + 1 between k and k + 1. A thread turns K columns of R input rows into 2K x 2R elements.
#pragma once

#include "ops/upsampling/task.cuh"

namespace graft {
namespace detail {

inline constexpr int doubled_threads = 256;

/// How far output 2k and 2k + 1 lie from the first of their two neighbours: an affine function of k.
struct DoubledWeights {
  float even_step;
  float even;
  float odd_step;
  float odd;

  [[nodiscard]] static DoubledWeights make(const SampledAxis& axis, CoordinateMode mode) {
    if (mode == CoordinateMode::half_pixel) return {0.F, 0.75F, 0.F, 0.25F};
    // align_corners: (2k + i) * (in - 1) / (2 in - 1), less k - 1 or k
    const double span = static_cast<double>(2 * axis.in - 1);
    return {static_cast<float>(-1 / span), 1.F, static_cast<float>(-1 / span),
            static_cast<float>(static_cast<double>(axis.in - 1) / span)};
  }
  /// At the edge both neighbours are the same element, and neither may be left out.
  [[nodiscard]] __device__ float even_at(int k) const {
    return k == 0 ? 0.5F : fmaf(static_cast<float>(k), even_step, even);
  }
  [[nodiscard]] __device__ float odd_at(int k, int in) const {
    return k + 1 == in ? 0.5F : fmaf(static_cast<float>(k), odd_step, odd);
  }
};

/// `f` of the way from a to b. Finite: the difference, which two results share, is a number.
template <bool Finite>
[[nodiscard]] __device__ float between(float a, float b, float f) {
  if constexpr (Finite) return fmaf(f, b - a, a);
  return fmaf(f, b, (1.F - f) * a);
}

/// Steps of x to i8 in steps of y.
template <int N>
[[nodiscard]] __device__ Vector<std::int8_t, N> pack_scaled(const float (&values)[N], float ratio) {
  float rounded[N];
#pragma unroll
  for (int i = 0; i < N; ++i) rounded[i] = fmaf(values[i], ratio, rounder);
  Vector<std::int8_t, N> result;
#pragma unroll
  for (int w = 0; w < N / 4; ++w) {
    const float* four = rounded + 4 * w;
    if (ratio <= 1.F) {  // nothing saturates, and the lowest byte is the number
      const unsigned low = __byte_perm(__float_as_uint(four[0]), __float_as_uint(four[1]), 0x0040U);
      const unsigned high = __byte_perm(__float_as_uint(four[2]), __float_as_uint(four[3]), 0x0040U);
      result.word(w) = __byte_perm(low, high, 0x5410U);
    } else {
      result.word(w) = pack_i8(four);
    }
  }
  return result;
}

template <class T, int K, int R>
__global__ void __launch_bounds__(doubled_threads)
    doubled_linear(const T* x, T* y, const UpsamplingTask task, DoubledWeights along_y, DoubledWeights along_x) {
  constexpr int N = 2 * K;
  const std::int64_t item = static_cast<std::int64_t>(blockIdx.x) * doubled_threads + threadIdx.x;
  if (item >= task.items) return;
  const Share share = Share::of(item, task);
  const int column = static_cast<int>(share.group) * K;
  const int first = share.strip * R;
  const int height = task.y.in;
  const int width = task.x.in;
  const T* from = x + share.plane * height * task.in_row;
  T* to = y + (share.plane * height + first) * 2 * task.out_row + 2 * column;

  Vector<T, K> middle[R + 2];
  T left[R + 2];
  T right[R + 2];
  const int before = ::max(column - 1, 0);
  const int after = ::min(column + K, width - 1);
#pragma unroll
  for (int j = 0; j < R + 2; ++j) {
    const T* row = from + static_cast<std::int64_t>(::min(::max(first + j - 1, 0), height - 1)) * task.in_row;
    middle[j] = Vector<T, K>::load(row + column);
    left[j] = row[before];
    right[j] = row[after];
  }
  float second[N];  // weights of the second neighbour
#pragma unroll
  for (int i = 0; i < K; ++i) {
    second[2 * i] = along_x.even_at(column + i);
    second[2 * i + 1] = along_x.odd_at(column + i, width);
  }

  constexpr bool is_i8 = std::is_same_v<T, std::int8_t>;
  float held[2][N];
#pragma unroll
  for (int j = 0; j < R + 2; ++j) {
    float values[K + 2];
    {
      float inner[K];
      middle[j].unpack(inner);
#pragma unroll
      for (int i = 0; i < K; ++i) values[i + 1] = inner[i];
      values[0] = static_cast<float>(left[j]);
      values[K + 1] = static_cast<float>(right[j]);
    }
    float(&now)[N] = held[j % 2];
    const float(&previous)[N] = held[1 - j % 2];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const int a = (i + 1) / 2;
      now[i] = between<is_i8>(values[a], values[a + 1], second[i]);
    }
    const auto store = [&](int row, float f) {
      float results[N];
#pragma unroll
      for (int i = 0; i < N; ++i) results[i] = between<is_i8>(previous[i], now[i], f);
      if (first + row / 2 >= height) return;
      if constexpr (is_i8)
        pack_scaled(results, task.ratio).store_streaming(to + row * task.out_row);
      else
        Vector<T, N>::pack(results).store_streaming(to + row * task.out_row);
    };
    const int k = first + j - 1;  // this row
    if (j >= 2) store(2 * j - 3, along_y.odd_at(k - 1, height));
    if (j >= 1 && j <= R) store(2 * j - 2, along_y.even_at(k));
  }
}

/// The same for channel-vector layouts: V channels of one column to V channels of two.
template <class T, int V, int R>
__global__ void __launch_bounds__(doubled_threads)
    doubled_channels(const T* x, T* y, const UpsamplingTask task, DoubledWeights along_y, DoubledWeights along_x) {
  constexpr bool is_i8 = std::is_same_v<T, std::int8_t>;
  const std::int64_t item = static_cast<std::int64_t>(blockIdx.x) * doubled_threads + threadIdx.x;
  if (item >= task.items) return;
  const Share share = Share::of(item, task);
  const auto group = static_cast<int>(share.group);
  const int column = static_cast<int>(task.by_parts(static_cast<unsigned>(group)));
  const int channel = (group - column * task.parts) * V;
  const int first = share.strip * R;
  const int height = task.y.in;
  const int width = task.x.in;
  const int channels_left = task.channels_from(share.plane, channel);
  const T* from = x + share.plane * height * task.in_row + channel;
  T* to = y + (share.plane * height + first) * 2 * task.out_row + 2LL * column * task.pitch + channel;
  const int columns[3] = {::max(column - 1, 0) * task.pitch, column * task.pitch,
                          ::min(column + 1, width - 1) * task.pitch};
  const float even = along_x.even_at(column);
  const float odd = along_x.odd_at(column, width);

  Vector<T, V> loaded[R + 2][3];
  const auto load_row = [&](int j) {
    const T* row = from + static_cast<std::int64_t>(::min(::max(first + j - 1, 0), height - 1)) * task.in_row;
#pragma unroll
    for (int i = 0; i < 3; ++i) loaded[j][i] = Vector<T, V>::load(row + columns[i]);
  };
  load_row(0);
  load_row(1);
  float held[2][2][V];
#pragma unroll
  for (int j = 0; j < R + 2; ++j) {
    if (j + 2 < R + 2) load_row(j + 2);
    float(&now)[2][V] = held[j % 2];
    const float(&previous)[2][V] = held[1 - j % 2];
    {
      float values[3][V];
#pragma unroll
      for (int i = 0; i < 3; ++i) loaded[j][i].unpack(values[i]);
#pragma unroll
      for (int v = 0; v < V; ++v) {
        now[0][v] = between<is_i8>(values[0][v], values[1][v], even);
        now[1][v] = between<is_i8>(values[1][v], values[2][v], odd);
      }
    }
    const auto store = [&](int row, float f) {
      if (first + row / 2 >= height) return;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float results[V];
#pragma unroll
        for (int v = 0; v < V; ++v) results[v] = between<is_i8>(previous[i][v], now[i][v], f);
        T* address = to + row * task.out_row + i * task.pitch;
        if constexpr (is_i8)
          pack_scaled(results, task.ratio).first(channels_left).store_streaming(address);
        else
          Vector<T, V>::pack(results).first(channels_left).store_streaming(address);
      }
    };
    const int k = first + j - 1;  // this row
    if (j >= 2) store(2 * j - 3, along_y.odd_at(k - 1, height));
    if (j >= 1 && j <= R) store(2 * j - 2, along_y.even_at(k));
  }
}

/// a, b, ... to a, a, b, b, ...
template <class T, int K>
[[nodiscard]] __device__ Vector<T, 2 * K> each_twice(const Vector<T, K>& vector) {
  if constexpr (K == 1) {
    const T both[2] = {vector.raw, vector.raw};
    return Vector<T, 2>::of(both);
  } else {
    Vector<T, 2 * K> result;
#pragma unroll
    for (int w = 0; w < Vector<T, K>::words; ++w) {
      const unsigned word = vector.word(w);
      constexpr auto size = sizeof(T);
      result.word(2 * w) = size == 4 ? word : __byte_perm(word, word, size == 2 ? 0x1010U : 0x1100U);
      result.word(2 * w + 1) = size == 4 ? word : __byte_perm(word, word, size == 2 ? 0x3232U : 0x3322U);
    }
    return result;
  }
}

template <class T, int K, int R>
__global__ void __launch_bounds__(doubled_threads) doubled_nearest(const T* x, T* y, const UpsamplingTask task) {
  constexpr int N = 2 * K;
  const std::int64_t item = static_cast<std::int64_t>(blockIdx.x) * doubled_threads + threadIdx.x;
  if (item >= task.items) return;
  const Share share = Share::of(item, task);
  const int column = static_cast<int>(share.group) * K;
  const int first = share.strip * R;
  const int height = task.y.in;
  const T* from = x + (share.plane * height + first) * task.in_row + column;
  T* to = y + (share.plane * height + first) * 2 * task.out_row + 2 * column;
  Vector<T, K> rows[R];
#pragma unroll
  for (int j = 0; j < R; ++j) {
    if (first + j < height) rows[j] = Vector<T, K>::load(from + j * task.in_row);
  }
#pragma unroll
  for (int j = 0; j < R; ++j) {
    if (first + j >= height) break;
    if constexpr (std::is_same_v<T, std::int8_t>) {
      if (task.ratio != 1.F) rows[j] = rows[j].times(task.ratio);
    }
    const Vector<T, N> twice = each_twice(rows[j]);
    twice.store_streaming(to + 2 * j * task.out_row);
    twice.store_streaming(to + (2 * j + 1) * task.out_row);
  }
}

}  // namespace detail
}  // namespace graft

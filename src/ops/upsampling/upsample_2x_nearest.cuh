// Nearest upsampling by exactly two along rows and columns: every row is written twice, with every element twice.
#pragma once

#include "ops/upsampling/task.cuh"

namespace graft::ops {
namespace detail {

inline constexpr int upsample_2x_nearest_threads = 256;

/// Returns a vector with each element of `vector` twice: a, a, b, b, ... for the elements a, b, ...
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

/// Repeats each element of x twice along rows and columns, in the linear layout. A thread reads K columns of R rows of
/// x.
template <class T, int K, int R>
__global__ void __launch_bounds__(upsample_2x_nearest_threads)
    upsample_2x_nearest(const T* x, T* y, const UpsamplingTask task) {
  constexpr int N = 2 * K;
  const unsigned item = blockIdx.x * upsample_2x_nearest_threads + threadIdx.x;
  if (item >= task.items) return;
  const Share share = Share::quick(item, task);
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

/// The task of upsample_2x_bulk_copy(). A block assembles the output of `lines` rows of the input, or of a piece of one
/// row, in shared memory, from which the copy engine stores it. On an H200 this reaches 0.87 of a copy's speed for i8
/// and 0.91 for f16; stores by threads reach 0.84 and 0.89. A unit is the set of elements that a thread loads at once:
/// elements whose output is 128 bits, or in channel-vector layouts 128 bits of channels.
struct CopiedTask {
  static constexpr int threads = 256;
  static constexpr int units_each = 2;
  static constexpr int most_units = threads * units_each;

  UpsamplingTask task;
  std::int64_t all_lines = 0;  ///< The number of rows of the input in all planes; planes need not be distinguished.
  int lines = 1;
  int line_units = 0;
  int units = 0;  ///< The number of units in a piece.
  QuickDivision by_units = {};
  QuickDivision by_pieces = {};
  bool is_padded = false;  ///< Whether vectors contain channels that x does not have.
};

template <class T, bool InVectors>
__global__ void __launch_bounds__(CopiedTask::threads)
    upsample_2x_bulk_copy(const T* x, T* y, const CopiedTask copied) {
  constexpr int V = InVectors ? widest<T> : widest<T> / 2;
  constexpr int unit_out = InVectors ? 2 : 1;  // 128 bits of a row of the output
  extern __shared__ float4 made[];
  const UpsamplingTask& task = copied.task;
  const unsigned group = copied.by_pieces(blockIdx.x);
  const int begin = static_cast<int>(blockIdx.x - group * copied.by_pieces.divisor) * copied.units;
  const std::int64_t first = static_cast<std::int64_t>(group) * copied.lines;
  const int lines = static_cast<int>(::min(copied.all_lines - first, static_cast<std::int64_t>(copied.lines)));
  const int units = ::min(copied.units, copied.line_units - begin);
  const int row_out = units * unit_out;
  const T* from = x + first * task.in_row + begin * V;

  // A block with several lines has whole lines, so their units are contiguous.
  Vector<T, V> loaded[CopiedTask::units_each];
#pragma unroll
  for (int i = 0; i < CopiedTask::units_each; ++i) {
    const int unit = i * CopiedTask::threads + static_cast<int>(threadIdx.x);
    if (unit < lines * units) loaded[i] = Vector<T, V>::load(from + unit * V);
  }
#pragma unroll
  for (int i = 0; i < CopiedTask::units_each; ++i) {
    const int unit = i * CopiedTask::threads + static_cast<int>(threadIdx.x);
    if (unit >= lines * units) break;
    const int line = static_cast<int>(copied.by_units(static_cast<unsigned>(unit)));
    const int at = unit - line * copied.units;
    Vector<T, V> vector = loaded[i];
    if constexpr (std::is_same_v<T, std::int8_t>) {
      if (task.ratio != 1.F) vector = vector.times(task.ratio);
    }
    float4* to = made + 2 * line * row_out;
    if constexpr (InVectors) {
      const int column = static_cast<int>(task.by_parts(static_cast<unsigned>(at)));
      if (copied.is_padded) {
        const int channel =
            (begin + at - static_cast<int>(task.by_parts(static_cast<unsigned>(begin + at))) * task.parts) * V;
        vector = vector.first(task.channels_from(divide(first + line, task.y.in), channel));
      }
      to += at + column * task.parts;
      for (const int offset : {0, task.parts, row_out, row_out + task.parts}) {
        *reinterpret_cast<uint4*>(to + offset) = vector.raw;
      }
    } else {
      const Vector<T, 2 * V> twice = each_twice(vector);
      *reinterpret_cast<uint4*>(to + at) = twice.raw;
      *reinterpret_cast<uint4*>(to + row_out + at) = twice.raw;
    }
  }
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x > 0) return;
  const auto store = [&](T* address, const float4* source, int count) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(address),
                 "r"(static_cast<unsigned>(__cvta_generic_to_shared(source))), "r"(count * 16)
                 : "memory");
  };
  T* to = y + first * 2 * task.out_row + 2 * begin * V;
  if (copied.by_pieces.divisor == 1) {
    store(to, made, 2 * lines * row_out);
  } else {
    store(to, made, row_out);
    store(to + task.out_row, made + row_out, row_out);
  }
  asm volatile("cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group.read 0;" ::: "memory");
#endif
}

}  // namespace detail
}  // namespace graft::ops

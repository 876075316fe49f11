// Euclidean norms of vectors that are interleaved element by element (the channels of N,C,H,W) in planes that are not
// whole vectors of 128 bits, so that each plane begins at a different offset from a multiple of 128 bits. Accesses are
// aligned: elements are loaded and stored in the aligned vectors that contain them. Elements that a block does not keep
// in registers are loaded a second time, from the L2 cache.
#pragma once

#include "kernels/launch.cuh"
#include "kernels/norm_columns.cuh"
#include "kernels/normalizer.cuh"

namespace graft {

/// The sizes of blocks and the work per thread, tuned on an H100.
struct ShiftedColumnsPolicy {
  static constexpr int threads = 256;
  static constexpr int rows = 4;         ///< The number of vectors that a thread holds in registers.
  static constexpr int log2_narrow = 3;  ///< The binary logarithm of the width of a block in threads.
  /// The binary logarithm of the width of a block if the tensor has at least `many_blocks` blocks of this width per
  /// multiprocessor.
  static constexpr int log2_wide = 4;
  static constexpr int many_blocks = 4;  ///< The number of blocks per multiprocessor from which blocks are wide.
  // The shortest column for these kernels. For shorter columns and smaller tensors columns_in_registers() is faster:
  // columns of 8 channels took a third to a half of the time. If planes have an odd number of 16-bit elements,
  // columns_in_registers() accesses one element at a time, and is faster only for still smaller tensors.
  static constexpr int shortest = 40;
  static constexpr std::int64_t fewest_bytes = 10 << 20;
  static constexpr std::int64_t fewest_bytes_of_odd = 4 << 20;
};

/// Returns the number of blocks of 1 << log2_width threads that a plane of `inner` elements needs. A block writes two
/// vectors of a row fewer than it reads, because only the columns of the vectors in between are complete.
[[nodiscard]] constexpr std::int64_t shifted_column_tiles(std::int64_t inner, int width, int log2_width) {
  return ceil_divide(ceil_divide(inner - 1, width) + 1, (1 << log2_width) - 2);
}

/// Returns whether run_shifted_columns() should normalize a tensor with 128-bit alignment: its columns and planes are
/// long enough, and it has a block for every multiprocessor.
template <class T>
[[nodiscard]] bool takes_shifted_columns(const Columns& columns, const DeviceTraits& device) {
  using Policy = ShiftedColumnsPolicy;
  constexpr int N = widest<T>;
  const bool is_odd = sizeof(T) == 2 && columns.inner % 2 == 1;
  const std::int64_t bytes = columns.outer * columns.reduced * columns.inner * static_cast<std::int64_t>(sizeof(T));
  return columns.inner % N != 0 && columns.inner >= 2 * N && columns.reduced >= Policy::shortest &&
         bytes >= (is_odd ? Policy::fewest_bytes_of_odd : Policy::fewest_bytes) &&
         columns.outer * shifted_column_tiles(columns.inner, N, Policy::log2_narrow) >= device.multiprocessors;
}

namespace kernels {

/// Normalizes columns of planes whose rows do not begin at multiples of a vector. Warp w processes the rows w, w +
/// warps, ... The number of warps is a multiple of N, so that all rows of a thread begin at the same offset from a
/// multiple of a vector. Thread tx processes the vector that begins in the columns (tx - 2) * N + 1 to (tx - 1) * N of
/// the block.
template <class T>
__global__ void __launch_bounds__(ShiftedColumnsPolicy::threads, 1024 / ShiftedColumnsPolicy::threads)
    shifted_columns(const T* x, T* y, Columns columns, int log2_width, int tiles, Normalizer normalizer,
                    ChannelWeights weights) {
  using Policy = ShiftedColumnsPolicy;
  constexpr int N = widest<T>;
  constexpr int R = Policy::rows;
  constexpr int warps = Policy::threads / 32;
  static_assert(warps % N == 0);
  constexpr int most_slots = N * ((1 << Policy::log2_wide) + 1);
  __shared__ float partial[warps][most_slots];
  __shared__ float totals[most_slots];
  const int width = 1 << log2_width;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int tx = lane & (width - 1);
  const int height = Policy::threads >> log2_width;
  const int ty = (lane >> log2_width) * warps + warp;
  const unsigned outer = blockIdx.x / static_cast<unsigned>(tiles);
  const std::int64_t begin_of_row = (std::int64_t{outer} * columns.reduced + ty) * columns.inner;
  const int shift = static_cast<int>(begin_of_row & (N - 1));
  const std::int64_t tile = blockIdx.x - outer * static_cast<unsigned>(tiles);
  const std::int64_t column = (tile * (width - 2) + tx - 1) * N - shift;
  // Only the elements of the vector from `begin` to `end` belong to the row.
  const int begin = static_cast<int>(::min(::max(-column, std::int64_t{0}), std::int64_t{N}));
  const int end = static_cast<int>(::min(columns.inner - column, std::int64_t{N}));
  const std::int64_t at = begin_of_row + column;
  const std::int64_t step = height * columns.inner;
  // The number of elements up to the end of the tensor.
  const std::int64_t left = columns.outer * columns.reduced * columns.inner - at;
  const int chunks = (columns.reduced + height * R - 1) / (height * R);
  const auto holds = [&](int row) { return begin < end && ty + row * height < columns.reduced; };

  Vector<T, N> held[R];
  const auto load = [&](int first) {
    int ending = -1;  // The index of the vector that extends past the end of the tensor.
#pragma unroll
    for (int j = 0; j < R; ++j) {
      const bool is_inside = (first + j) * step + N <= left;
      held[j] = holds(first + j) && is_inside ? Vector<T, N>::load(x + at + (first + j) * step) : Vector<T, N>::zero();
      if (holds(first + j) && !is_inside) ending = j;
    }
    if (ending < 0) return;
    const auto last = Vector<T, N>::load_first(x + at + (first + ending) * step, end);
#pragma unroll
    for (int j = 0; j < R; ++j) {
      if (j == ending) held[j] = last;
    }
  };
  float sums[N] = {};
  for (int chunk = 0; chunk < chunks; ++chunk) {
    load(chunk * R);
    add_squares(held, sums);
  }

  // Column c, counted from one vector before the first column, has slot (c mod N) * (width + 1) + c / N, so that
  // adjacent threads use adjacent banks.
  for (int distance = 16; distance >= width; distance /= 2) {
#pragma unroll
    for (int i = 0; i < N; ++i) sums[i] += __shfl_xor_sync(0xFFFFFFFFU, sums[i], distance);
  }
  const auto slot_of = [&](int i) { return ((i - shift) & (N - 1)) * (width + 1) + tx + (i >= shift ? 1 : 0); };
  if (lane < width) {
#pragma unroll
    for (int i = 0; i < N; ++i) partial[warp][slot_of(i)] = sums[i];
  }
  __syncthreads();
  for (int c = static_cast<int>(threadIdx.x); c < (width - 1) * N; c += Policy::threads) {
    const int slot = (c & (N - 1)) * (width + 1) + c / N + 1;
    float sum = 0;
#pragma unroll
    for (int w = 0; w < warps; ++w) sum += partial[w][slot];
    totals[slot] = normalizer.factor<T>(sum);
  }
  __syncthreads();
  if (tx == 0 || tx == width - 1) return;
  float factors[N];
#pragma unroll
  for (int i = 0; i < N; ++i) factors[i] = totals[slot_of(i)];

  // The last rows are still in registers.
  for (int chunk = chunks - 1;; --chunk) {
#pragma unroll
    for (int j = 0; j < R; ++j) {
      const int row = chunk * R + j;
      held[j].forget();
      if (!holds(row)) continue;
      const Vector<T, N> result = weights.scale(held[j], factors, weights.weight(ty + row * height));
      T* const to = y + at + row * step;
      if (begin == 0 && end == N)
        result.store(to);
      else
        result.store_between(to, begin, end);
    }
    if (chunk == 0) break;
    load((chunk - 1) * R);
  }
}

}  // namespace kernels

/// Normalizes a tensor for which takes_shifted_columns() is true.
template <class T>
[[nodiscard]] Status run_shifted_columns(const char* what, const T* x, T* y, const Columns& columns,
                                         const Normalizer& normalizer, const ChannelWeights& weights,
                                         const DeviceTraits& device, const CudaContext& context) {
  using Policy = ShiftedColumnsPolicy;
  constexpr int N = widest<T>;
  int log2_width = Policy::log2_wide;
  if (columns.outer * shifted_column_tiles(columns.inner, N, log2_width) <
      std::int64_t{Policy::many_blocks} * device.multiprocessors) {
    log2_width = Policy::log2_narrow;
  }
  const std::int64_t tiles = shifted_column_tiles(columns.inner, N, log2_width);
  return launch(what, kernels::shifted_columns<T>, {columns.outer * tiles, Policy::threads}, context, x, y, columns,
                log2_width, static_cast<int>(tiles), normalizer, weights);
}

}  // namespace graft

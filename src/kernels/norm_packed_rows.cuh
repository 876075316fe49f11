// Euclidean norms of many short rows that begin at any address. A block reads adjacent rows, the first of which begins
// at a multiple of a vector, in vectors of 128 bits, and sums each row from shared memory.
#pragma once

#include "kernels/divisor.cuh"
#include "kernels/launch.cuh"
#include "kernels/normalizer.cuh"

namespace graft {

/// The sizes of blocks and the work per thread, tuned on an H100.
struct PackedRowsPolicy {
  static constexpr int threads = 256;
  static constexpr int vectors = 4;  ///< The number of vectors that a thread holds in registers.
  /// The longest row in elements. A block holds as many such rows as a vector has elements.
  static constexpr int longest = threads * vectors;
  // With fewer rows or elements, blocks have too little work: 2711 rows of 1547 f16 took 1.3 times as long as with one
  // row per block.
  static constexpr std::int64_t fewest_rows = 10'000;
  static constexpr std::int64_t fewest_bytes = 3 << 20;
};

namespace kernels {

struct PackedRows {
  std::int64_t count;
  int length;
  int of_block;    ///< The number of rows that a block processes, a multiple of the elements of a vector.
  int log2_lanes;  ///< The binary logarithm of the number of lanes that sum a row.
  Divisor by_length;
};

/// Returns the elements of `vector`, each multiplied by the factor of its row and by its weight. The first element is
/// element `offset` of row `row`.
template <class T, int N>
__device__ Vector<T, N> scale_across_rows(const Vector<T, N>& vector, const float* factors, int row, int offset,
                                          int length, const ChannelWeights& weights) {
  float products[N];
  float factor = factors[row];
#pragma unroll
  for (int i = 0; i < N; ++i) {
    products[i] = factor * weights.weight(offset);
    if (++offset == length && i + 1 < N) {
      offset = 0;
      factor = factors[++row];
    }
  }
  return vector.times(products);
}

template <class T>
__global__ void __launch_bounds__(PackedRowsPolicy::threads)
    packed_rows(const T* x, T* y, PackedRows rows, Normalizer normalizer, ChannelWeights weights) {
  constexpr int N = widest<T>;
  constexpr int R = PackedRowsPolicy::vectors;
  constexpr int threads = PackedRowsPolicy::threads;
  extern __shared__ float4 shared_rows[];
  T* const elements = reinterpret_cast<T*>(shared_rows);
  float* const factors = reinterpret_cast<float*>(elements + rows.of_block * rows.length);
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t first = std::int64_t{blockIdx.x} * rows.of_block;
  const int count = static_cast<int>(::min(rows.count - first, std::int64_t{rows.of_block}));
  const int size = count * rows.length;
  const int whole = size / N;  // The number of whole vectors. In the last block, elements may remain.
  const T* const from = x + first * rows.length;
  T* const to = y + first * rows.length;

  Vector<T, N> vectors[R];
#pragma unroll
  for (int j = 0; j < R; ++j) {
    const int index = j * threads + thread;
    if (index < whole) vectors[j] = Vector<T, N>::load(from + index * N);
  }
#pragma unroll
  for (int j = 0; j < R; ++j) {
    const int index = j * threads + thread;
    if (index < whole) vectors[j].store(elements + index * N);
  }
  const int left = whole * N + thread;
  if (left < size) elements[left] = from[left];
  __syncthreads();

  const int lanes = 1 << rows.log2_lanes;
  const int lane = thread & (lanes - 1);
  for (int base = 0; base < count; base += threads >> rows.log2_lanes) {
    const int row = base + (thread >> rows.log2_lanes);
    float sum = 0;
    if (row < count) {
      const T* const own = elements + row * rows.length;
      if (sizeof(T) == 2 && rows.length % 2 == 0) {
#pragma unroll 4
        for (int i = 2 * lane; i < rows.length; i += 2 * lanes) {
          sum += Vector<T, 4 / static_cast<int>(sizeof(T))>::load(own + i).sum_of_squares();
        }
      } else {
#pragma unroll 4
        for (int i = lane; i < rows.length; i += lanes) sum += Vector<T, 1>::load(own + i).sum_of_squares();
      }
    }
    for (int distance = lanes / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xFFFFFFFFU, sum, distance);
    if (row < count && lane == 0) factors[row] = normalizer.factor<T>(sum);
  }
  __syncthreads();

#pragma unroll
  for (int j = 0; j < R; ++j) {
    const int index = j * threads + thread;
    if (index >= whole) break;
    vectors[j].forget();
    const int row = rows.by_length.quotient(index * N);
    const int offset = index * N - row * rows.length;
    const auto result = offset + N <= rows.length
                            ? weights.scale_run(vectors[j], factors[row], offset, rows.length)
                            : scale_across_rows(vectors[j], factors, row, offset, rows.length, weights);
    result.store(to + index * N);
  }
  if (left < size) {
    const int row = rows.by_length.quotient(left);
    const auto element = Vector<T, 1>::load(elements + left);
    scale_across_rows(element, factors, row, left - row * rows.length, rows.length, weights).store(to + left);
  }
}

}  // namespace kernels

/// Returns whether packed rows are faster than other kernels for `count` rows of `length` elements in an aligned
/// tensor. Always false for rows that consist of whole vectors.
template <class T>
[[nodiscard]] bool packs_rows(std::int64_t count, std::int64_t length) {
  using Policy = PackedRowsPolicy;
  return length % widest<T> != 0 && length >= widest<T> && length <= Policy::longest && count >= Policy::fewest_rows &&
         count * length * static_cast<std::int64_t>(sizeof(T)) >= Policy::fewest_bytes;
}

template <class T>
[[nodiscard]] Status run_packed_rows(const char* what, const T* x, T* y, std::int64_t count, int length,
                                     const Normalizer& normalizer, const ChannelWeights& weights,
                                     const CudaContext& context) {
  using namespace kernels;
  using Policy = PackedRowsPolicy;
  // Rows form groups of as many rows as a vector has elements; each group has `length` vectors.
  int of_block = Policy::longest / length * widest<T>;
  if (of_block > Policy::threads) of_block -= of_block % Policy::threads;  // All threads sum the same number of rows.
  PackedRows rows{
      .count = count, .length = length, .of_block = of_block, .log2_lanes = 0, .by_length = Divisor(length)};
  while (rows.log2_lanes < 5 && 2 << rows.log2_lanes <= length &&
         of_block << (rows.log2_lanes + 1) <= Policy::threads) {
    ++rows.log2_lanes;
  }
  const int bytes_of_row = length * static_cast<int>(sizeof(T)) + static_cast<int>(sizeof(float));
  const Grid grid{.blocks = ceil_divide(count, of_block),
                  .threads = Policy::threads,
                  .cluster = 1,
                  .shared_bytes = of_block * bytes_of_row};
  return launch(what, packed_rows<T>, grid, context, x, y, rows, normalizer, weights);
}

}  // namespace graft

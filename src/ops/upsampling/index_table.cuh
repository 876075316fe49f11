// Upsampling to the nearest element, by any factor along any axes, in the linear layout. A block computes a piece of y
// of whole vectors, wherever its rows begin. Tables in shared memory contain the row and the column of x for each row
// and column of the piece.
#pragma once

#include "ops/upsampling/short_axis.cuh"

namespace graft::ops {
namespace detail {

struct IndexTableTask {
  static constexpr int threads = 256;
  static constexpr int most_vectors = 8;  ///< The largest piece has threads * most_vectors vectors.
  static constexpr int blocks_per_multiprocessor = 8;
  static constexpr int narrowest = 8;  ///< The minimum number of columns of y for which the table of rows fits.
  /// The maximum number of columns of x, so that 16 bits can store an index.
  static constexpr std::int64_t longest_row = std::int64_t{1} << 16;
  /// The minimum size of y in bytes. For a smaller y, and for single rows, kernels that compute each position took less
  /// time on an H100 than kernels with a table.
  static constexpr std::int64_t fewest_bytes = std::int64_t{1} << 22;

  ShortAxis z;
  ShortAxis y;
  ShortAxis x;
  unsigned count = 0;  ///< The number of elements in y.
  int piece = 0;       ///< The number of elements of y that a block computes.
  /// The number of entries in the table of columns: one per column of a row or, for longer rows, one per element of the
  /// piece.
  int columns = 0;
  QuickDivision by_row = {};  ///< The divisor is the number of columns of y.
  QuickDivision by_height = {};
  QuickDivision by_depth = {};

  [[nodiscard]] int most_rows() const { return piece / x.out + 2; }
  [[nodiscard]] int shared_bytes() const {
    return most_rows() * static_cast<int>(sizeof(int)) + columns * static_cast<int>(sizeof(unsigned short));
  }
};

template <class T>
__global__ void __launch_bounds__(IndexTableTask::threads)
    index_table(const T* x, T* y, const __grid_constant__ IndexTableTask task, int most_rows) {
  constexpr int N = widest<T>;
  constexpr int threads = IndexTableTask::threads;
  extern __shared__ int row_of[];  // The offsets in x at which rows begin.
  unsigned short* const column_of = reinterpret_cast<unsigned short*>(row_of + most_rows);
  const int thread = static_cast<int>(threadIdx.x);
  const int width = task.x.out;
  const bool whole_rows = task.columns == width;
  const unsigned first = blockIdx.x * static_cast<unsigned>(task.piece);
  const int size = static_cast<int>(::min(task.count - first, static_cast<unsigned>(task.piece)));
  const unsigned first_line = task.by_row(first);
  const int first_column = static_cast<int>(first - first_line * task.by_row.divisor);
  const int lines = static_cast<int>(task.by_row(static_cast<unsigned>(first_column + size - 1))) + 1;
  for (int i = thread; i < lines; i += threads) {
    const unsigned line = first_line + static_cast<unsigned>(i);
    const unsigned section = task.by_height(line);
    const unsigned volume = task.by_depth(section);
    const int row = task.y.clamp(task.y.at(static_cast<int>(line - section * task.by_height.divisor)).index);
    const int slice = task.z.clamp(task.z.at(static_cast<int>(section - volume * task.by_depth.divisor)).index);
    row_of[i] = ((static_cast<int>(volume) * task.z.in + slice) * task.y.in + row) * task.x.in;
  }
  for (int i = thread; i < task.columns; i += threads) {
    int column = i;
    if (!whole_rows) column += first_column < width - i ? first_column : first_column - width;
    column_of[i] = static_cast<unsigned short>(task.x.clamp(task.x.at(column).index));
  }
  __syncthreads();

  const auto make = [&](int begin, auto& elements) {
    const auto at = static_cast<unsigned>(first_column + begin);
    int line = static_cast<int>(task.by_row(at));
    int column = static_cast<int>(at) - line * width;
    int entry = whole_rows ? column : begin;
    const T* from = x + row_of[line];
#pragma unroll
    for (T& element : elements) {
      if (column == width) {
        column = 0;
        if (whole_rows) entry = 0;
        from = x + row_of[++line];
      }
      element = from[column_of[entry]];
      ++column;
      ++entry;
    }
  };
  T* const to = y + first;
#pragma unroll 2
  for (int begin = thread * N; begin + N <= size; begin += threads * N) {
    T elements[N];
    make(begin, elements);
    Vector<T, N>::of(elements).store_streaming(to + begin);
  }
  const int left = size - size % N + thread;  // The elements of the last piece that do not fill a vector.
  if (left < size) {
    T elements[1];
    make(left, elements);
    to[left] = elements[0];
  }
}

}  // namespace detail
}  // namespace graft::ops

// The vectors of 128 bits that contain a row of a tensor. The row may begin and end between two multiples of a vector.
#pragma once

#include <cstdint>

#include "kernels/divisor.cuh"
#include "kernels/launch.cuh"
#include "kernels/strides.cuh"
#include "kernels/vector.cuh"

namespace graft {

/// The alignment of rows in memory. whole: rows consist of whole vectors. padded: the last vector ends in padding.
/// shifted: rows begin anywhere; the first and the last vector then contain elements of adjacent rows, which are read
/// but not written.
enum class RowForm : std::uint8_t { whole, padded, shifted };

/// Returns the number of vectors of `width` elements that contain `length` adjacent elements. If rows are not whole
/// vectors, the number is sufficient wherever the elements begin.
[[nodiscard]] constexpr std::int64_t row_vectors(std::int64_t length, int width) {
  return length % width == 0 ? length / width : (length + 2 * (width - 1)) / width;
}

/// The position of a vector in a row and in the tensor.
struct RowVector {
  std::int64_t at;  ///< The index in the tensor of the first element of the vector.
  int element;      ///< The index in the row of the first element of the vector; negative before the row.
  int begin;        ///< The index in the vector of the first element that belongs to the row.
  int end;          ///< The index in the vector of the first element after the row.
  bool exists;

  /// Loads the vector, with zeros for elements outside of the row. `size` is the number of elements of the tensor, past
  /// which nothing is read.
  template <class T, int N, RowForm Form>
  [[nodiscard]] __device__ Vector<T, N> load(const T* x, std::int64_t size) const {
    if (!exists) return Vector<T, N>::zero();
    if constexpr (Form != RowForm::shifted) {
      const auto vector = Vector<T, N>::load(x + at);
      return Form == RowForm::padded ? vector.first(end) : vector;
    } else {
      if (at + N <= size) {
        const auto vector = Vector<T, N>::load(x + at);
        return begin > 0 || end < N ? vector.between(begin, end) : vector;
      }
      T elements[N];
#pragma unroll
      for (int i = 0; i < N; ++i) elements[i] = i >= begin && i < end ? x[at + i] : T(0.F);
      return Vector<T, N>::of(elements);
    }
  }
  template <class T, int N, RowForm Form>
  __device__ void store(T* y, const Vector<T, N>& vector) const {
    if (!exists) return;
    if (Form == RowForm::padded)
      vector.first(end).store(y + at);
    else if (Form == RowForm::shifted && (begin > 0 || end < N))
      vector.store_between(y + at, begin, end);
    else
      vector.store(y + at);
  }
};

/// Rows of `length` elements. Each row begins `pitch` elements after the previous one. Elements between rows are
/// ignored when reading and written as zeros.
struct Rows {
  static constexpr bool may_have_weights = true;
  std::int64_t count;
  int length;
  int pitch;

  /// The largest number of vectors in a row that one block normalizes, tuned on an H200.
  static constexpr int most_in_one_block = 8192;

  [[nodiscard]] std::int64_t vectors(int width) const {
    return pitch == length ? row_vectors(length, width) : pitch / width;
  }
  [[nodiscard]] __device__ std::int64_t size() const { return count * pitch; }
  /// Returns the index in the tensor of the first element of a row.
  [[nodiscard]] __device__ std::int64_t begin(std::int64_t row) const { return row * pitch; }
  template <int N, RowForm Form>
  [[nodiscard]] __device__ RowVector vector(std::int64_t begin, int index) const {
    const int shift = Form == RowForm::shifted ? static_cast<int>(begin & (N - 1)) : 0;
    const int element = index * N - shift;
    return {.at = begin + element,
            .element = element,
            .begin = ::max(-element, 0),
            .end = ::min(length - element, N),
            .exists = element < (Form == RowForm::padded ? pitch : length)};
  }
};

/// Rows that consist of pieces which lie `stride` elements apart (a channel of all items of a batch). They have no
/// weights, because the axes of operators with channel weights are adjacent.
struct RowsInPieces {
  static constexpr bool may_have_weights = false;
  std::int64_t count;
  std::int64_t all;  ///< The number of elements that the tensor has.
  int length;
  int piece;             ///< The number of elements that a piece has.
  int vectors_of_piece;  ///< The maximum number of vectors that a piece takes, in the access width that is used.
  Divisor by_vectors;
  std::int64_t stride;
  StridedLoop kept;

  /// The largest number of vectors in a row that one block normalizes, tuned on an H200.
  static constexpr int most_in_one_block = 4096;

  [[nodiscard]] std::int64_t vectors(int width) const { return length / piece * row_vectors(piece, width); }
  [[nodiscard]] __device__ std::int64_t size() const { return all; }
  [[nodiscard]] __device__ std::int64_t begin(std::int64_t row) const { return kept.offset(row); }
  template <int N, RowForm Form>
  [[nodiscard]] __device__ RowVector vector(std::int64_t begin, int index) const {
    const int number = by_vectors.quotient(index);
    const std::int64_t from = begin + number * stride;
    const int shift = Form == RowForm::shifted ? static_cast<int>(from & (N - 1)) : 0;
    const int offset = (index - number * vectors_of_piece) * N - shift;
    return {.at = from + offset,
            .element = number * piece + offset,
            .begin = ::max(-offset, 0),
            .end = ::min(piece - offset, N),
            .exists = offset < piece && number * piece < length};
  }
};

}  // namespace graft

// The vectors of a row of a tensor. The row may begin and end between two multiples of a vector.
#pragma once

#include <cstdint>

#include "kernels/divisor.cuh"
#include "kernels/launch.cuh"
#include "kernels/strides.cuh"
#include "kernels/vector.cuh"

namespace graft {

/// The position of rows in memory. whole: whole vectors. padded: whole vectors, the last of which ends in padding.
/// shifted: anywhere; the first and the last vector then hold elements of adjacent rows, which are read but not
/// written.
enum class RowForm : std::uint8_t { whole, padded, shifted };

/// Returns the number of vectors that hold `length` adjacent elements, wherever these begin if they are not whole
/// vectors.
[[nodiscard]] constexpr std::int64_t row_vectors(std::int64_t length, int width) {
  return length % width == 0 ? length / width : (length + 2 * (width - 1)) / width;
}

/// A vector of a row.
struct RowVector {
  std::int64_t at;  ///< The index of its first element in the tensor.
  int element;      ///< The index of its first element in the row; negative before the row.
  int begin;        ///< The first of its elements that belongs to the row.
  int end;          ///< The first of its elements after the row.
  bool exists;

  /// Loads the vector; elements outside of the row are zero. `size` is the number of elements of the tensor, past which
  /// nothing is read.
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

/// Rows of `length` elements, each `pitch` elements after the previous row. Elements between rows are ignored and
/// become zero.
struct Rows {
  static constexpr bool may_have_weights = true;
  std::int64_t count;
  int length;
  int pitch;

  static constexpr int most_in_one_block = 8192;  ///< The limit in vectors, tuned on an H200.

  [[nodiscard]] std::int64_t vectors(int width) const {
    return pitch == length ? row_vectors(length, width) : pitch / width;
  }
  [[nodiscard]] __device__ std::int64_t size() const { return count * pitch; }
  /// Returns the index of the first element of a row in the tensor.
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

/// Rows in pieces that lie `stride` elements apart (channels of all items). They have no weights: the axes of operators
/// with weights for channels are adjacent.
struct RowsInPieces {
  static constexpr bool may_have_weights = false;
  std::int64_t count;
  std::int64_t all;  ///< Elements of the tensor.
  int length;
  int piece;             ///< Elements of a piece.
  int vectors_of_piece;  ///< Vectors of a piece at most, in the width that is used.
  Divisor by_vectors;
  std::int64_t stride;
  StridedLoop kept;

  static constexpr int most_in_one_block = 4096;  ///< The limit in vectors, tuned on an H200.

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

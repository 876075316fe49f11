// The rows of a problem of LargestK, and the workspace of its CUDA kernels.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/workspace_parts.hpp"
#include "graft/operator/elementwise.hpp"
#include "ops/largest_k/largest_k.hpp"

namespace graft::ops {

/// The sizes of a problem as rows along the axis. The elements of a row are `stride` apart in memory.
struct LargestRows {
  LargestRows(const LargestK& op, const Problem& problem) {
    const Extents& x = problem.inputs[0].extents;
    const int along = op.axis_of(x.rank());
    length = x[along];
    kept = op.k;
    for (int axis = 0; axis < along; ++axis) rows *= x[axis];
    for (int axis = along + 1; axis < x.rank(); ++axis) stride *= x[axis];
    rows *= stride;
  }

  std::int64_t rows = 1;
  /// Returns whether the kernels first select the kept elements of each row and then sort only the kept elements. This
  /// is done if few of many elements are kept, in few enough rows for the whole GPU to sort them as one sequence. On an
  /// H200 the selection is faster from 2 million elements on. i64 is excluded because its six digits need more than 64
  /// bits.
  [[nodiscard]] bool are_selected(DType dtype) const {
    constexpr std::int64_t enough = std::int64_t{1} << 21;
    return dtype != DType::i64 && rows < enough_for_a_block_each && length / 4 >= kept && rows * length >= enough;
  }
  static constexpr std::int64_t enough_for_a_block_each = 128;

  std::int64_t stride = 1;
  std::int64_t length = 0;
  std::int64_t kept = 0;
};

/// The number of elements of a row that one block reads during the selection.
inline constexpr int select_tile = 4096;
/// The number of bits in a digit of a key.
inline constexpr int select_digit_bits = 11;
inline constexpr int select_digits = 1 << select_digit_bits;
[[nodiscard]] constexpr int select_passes(int key_bits) {
  return (key_bits + select_digit_bits - 1) / select_digit_bits;
}

/// Returns the number of tiles of a row.
template <class Count>
[[nodiscard]] GRAFT_HOST_DEVICE constexpr Count select_tiles(Count length) {
  return (length + select_tile - 1) / select_tile;
}

/// The digits of the key of the last kept element of a row that are known after some passes.
struct SelectState {
  std::uint64_t prefix;  ///< The first digits of the key.
  std::int64_t rest;     ///< The number of kept elements among those with this prefix.
};

/// Byte offsets in the workspace of the CUDA kernels.
struct LargestPlan : WorkspaceParts {
  LargestPlan(const LargestRows& rows, DType dtype) {
    const std::int64_t elements = rows.rows * rows.length;
    for (std::int64_t& each : keys) each = add(elements * static_cast<std::int64_t>(size_of(dtype)));
    for (std::int64_t& each : places) each = add(elements * 4);
    offsets = add((rows.rows + 1) * 4);
    // CUB needs half a byte for each element and some tables.
    constexpr std::int64_t tables = 128 * 1024;
    sort_bytes = elements + tables;
    sort = add(sort_bytes);
    const std::int64_t few = std::min(rows.rows, LargestRows::enough_for_a_block_each);
    const int passes = select_passes(8 * static_cast<int>(size_of(dtype)));
    histograms_bytes = few * passes * select_digits * 4;
    histograms = add(histograms_bytes);
    states = add(few * (passes + 1) * static_cast<std::int64_t>(sizeof(SelectState)));
    tile_counts = add(few * select_tiles(rows.length) * 8);
  }

  std::int64_t keys[2] = {};
  std::int64_t places[2] = {};
  std::int64_t offsets = 0;
  std::int64_t sort = 0;
  std::int64_t sort_bytes = 0;
  std::int64_t histograms = 0;  ///< A histogram of each pass, for each row.
  std::int64_t histograms_bytes = 0;
  std::int64_t states = 0;  ///< The states of each row: before each pass and after the last pass.
  /// For each tile, the number of elements before the last kept one, and the number of those with an equal key.
  std::int64_t tile_counts = 0;
};

}  // namespace graft::ops

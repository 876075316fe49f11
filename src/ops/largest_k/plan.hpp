// The rows of a problem of LargestK, and where its kernels keep what they sort.
#pragma once

#include <algorithm>
#include <cstdint>

#include "graft/elementwise.hpp"
#include "ops/largest_k/largest_k.hpp"
#include "ops/workspace_parts.hpp"

namespace graft::ops {

/// A row is what lies along the axis: its elements are `stride` apart.
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
  /// Whether those that are kept are found before they are sorted: few of very many, in no more rows than all of the
  /// GPU sorts as one. On an H200 that pays from 2 million elements on. Not of i64, whose six digits have more than 64
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

/// Elements of a row that a block of the selection reads, and the numbers of their digits.
inline constexpr int select_tile = 4096;
inline constexpr int select_digit_bits = 11;
inline constexpr int select_digits = 1 << select_digit_bits;
[[nodiscard]] constexpr int select_passes(int key_bits) {
  return (key_bits + select_digit_bits - 1) / select_digit_bits;
}

/// Tiles of a row.
template <class Count>
[[nodiscard]] GRAFT_HOST_DEVICE constexpr Count select_tiles(Count length) {
  return (length + select_tile - 1) / select_tile;
}

/// What is known of the last element of a row that is kept after some of its digits.
struct SelectState {
  std::uint64_t prefix;  ///< Of its key.
  std::int64_t rest;     ///< How many elements with that prefix are kept.
};

/// Byte offsets in the workspace.
struct LargestPlan : WorkspaceParts {
  LargestPlan(const LargestRows& rows, DType dtype) {
    const std::int64_t elements = rows.rows * rows.length;
    for (std::int64_t& each : keys) each = add(elements * static_cast<std::int64_t>(size_of(dtype)));
    for (std::int64_t& each : places) each = add(elements * 4);
    offsets = add((rows.rows + 1) * 4);
    // CUB asks for half a byte for each element and some tables.
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
  std::int64_t histograms = 0;  ///< Of a row one after another, for each pass.
  std::int64_t histograms_bytes = 0;
  std::int64_t states = 0;       ///< Of a row, before each pass and after the last.
  std::int64_t tile_counts = 0;  ///< Of each tile, the elements in front of the last that is kept, and those like it.
};

}  // namespace graft::ops

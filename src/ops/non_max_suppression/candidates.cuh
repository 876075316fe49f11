// What the kernels of NonMaxSuppression have in common: a segment, the boxes of its item, and how a tile is selected
// from.
#pragma once

#include <cstdint>

#include "ops/non_max_suppression/overlap.hpp"

namespace graft::ops {

/// What a segment's blocks know of it.
struct Segments {
  int boxes = 0;
  int classes = 0;
  int most = 0;
  bool is_center = false;

  /// How many each may select, of what the input allows.
  [[nodiscard]] __device__ int limit(const std::int64_t* max_output) const {
    const std::int64_t wanted = *max_output;
    return wanted < 0 ? 0 : wanted < most ? static_cast<int>(wanted) : most;
  }
};

template <class T>
__device__ Box load_box(const T* boxes, int index, bool is_center) {
  const T* from = boxes + static_cast<std::int64_t>(index) * 4;
  const float numbers[4] = {static_cast<float>(from[0]), static_cast<float>(from[1]), static_cast<float>(from[2]),
                            static_cast<float>(from[3])};
  return box_of(numbers, is_center);
}

/// One for each candidate of a tile.
using TileBits = unsigned long long;

/// The boxes that a tile's candidates leave: from the first on each that is in `left`, which takes those that it
/// overlaps from it; at most `room`.
__device__ inline TileBits select_in_tile(TileBits left, const TileBits* overlapped, int room) {
  TileBits chosen = 0;
  for (; left != 0 && room > 0; --room) {
    const int next = __ffsll(static_cast<long long>(left)) - 1;
    chosen |= TileBits{1} << next;
    left &= ~(overlapped[next] | TileBits{1} << next);
  }
  return chosen;
}

}  // namespace graft::ops

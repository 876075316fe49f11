// Shared parts of the kernels of NonMaxSuppression: the sizes of segments, boxes, and the selection from a tile of
// candidates.
#pragma once

#include <cstdint>

#include "ops/non_max_suppression/overlap.hpp"

namespace graft::ops {

/// The sizes that the blocks of all segments share. A segment consists of the boxes and scores of one class of one
/// item.
struct Segments {
  int boxes = 0;
  int classes = 0;
  int most = 0;
  bool is_center = false;

  /// Returns the number of boxes that each segment may select: `*max_output`, clamped to 0 to `most`.
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

/// A bit for each candidate of a tile.
using TileBits = unsigned long long;

/// Selects boxes from the candidates of a tile in order and returns their bits: each candidate that is still in `left`
/// is selected, and the candidates that it overlaps are removed from `left`. Selects at most `room` boxes.
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

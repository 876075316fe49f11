// The positions at which DeformableConvolution samples an image. The reference and the CUDA kernels compute the same
// positions, bit by bit.
#pragma once

#include <cmath>
#include <cstdint>

#include "graft/operator/elementwise.hpp"

namespace graft::ops {

/// The pixels around a position: rows `row` and `row` + 1, columns `column` and `column` + 1, some of which may lie
/// outside the image. `is_near` is false if all four do, because the position is a pixel or more outside the image, or
/// not a number.
struct DeformablePosition {
  bool is_near = false;
  int row = 0;
  int column = 0;
  float down = 0;    ///< The vertical distance from `row` to the position.
  float across = 0;  ///< The horizontal distance from `column` to the position.
};

/// Returns the position of an element of the window. `base_row` and `base_column` are its position without its offset.
[[nodiscard]] GRAFT_HOST_DEVICE inline DeformablePosition deformable_position(std::int64_t base_row,
                                                                              std::int64_t base_column, float move_down,
                                                                              float move_across, std::int64_t height,
                                                                              std::int64_t width) {
  const float row = static_cast<float>(base_row) + move_down;
  const float column = static_cast<float>(base_column) + move_across;
  DeformablePosition position;
  position.is_near =
      row > -1.F && row < static_cast<float>(height) && column > -1.F && column < static_cast<float>(width);
  if (!position.is_near) return position;
  const float first_row = floorf(row);
  const float first_column = floorf(column);
  position.row = static_cast<int>(first_row);
  position.column = static_cast<int>(first_column);
  position.down = row - first_row;
  position.across = column - first_column;
  return position;
}

}  // namespace graft::ops

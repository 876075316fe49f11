// Decodes the box of a candidate. The CPU and a GPU compute the same, except for the last bits of exp.
#pragma once

#include <cmath>

#include "ops/non_max_suppression/overlap.hpp"

namespace graft::ops {

/// The coordinates of a box as its input has them, or x1, y1, x2, y2 after decoding.
struct Coordinates {
  float values[4];
};

/// Returns a box whose corners are the lower and the upper corner of `box`.
GRAFT_OVERLAP_INLINE Coordinates in_order(const Coordinates& box) {
  const Box ordered = box_of(box.values, false);
  return {{ordered.low[0], ordered.low[1], ordered.high[0], ordered.high[1]}};
}

/// Returns the box that `offset` describes relative to `anchor`. All three are corners or, if `is_center`, centers and
/// sizes.
GRAFT_OVERLAP_INLINE Coordinates refine(const Coordinates& offset, const Coordinates& anchor, bool is_center) {
  Coordinates box{};
  if (is_center) {
    for (int axis = 0; axis < 2; ++axis) {
      box.values[axis] = product(offset.values[axis], anchor.values[axis + 2]) + anchor.values[axis];
      box.values[axis + 2] = product(anchor.values[axis + 2], expf(offset.values[axis + 2]));
    }
    return box;
  }
  const Coordinates a = in_order(offset);
  const Coordinates b = in_order(anchor);
  for (int i = 0; i < 4; ++i) box.values[i] = a.values[i] + b.values[i];
  return box;
}

/// Returns the corners of a box that is given by its center and size or, unless `is_center`, by its corners. Corners
/// are returned unchanged, in any order.
GRAFT_OVERLAP_INLINE Coordinates corners_of(const Coordinates& box, bool is_center) {
  if (!is_center) return box;
  Coordinates corners{};
  for (int axis = 0; axis < 2; ++axis) {
    const float half = product(box.values[axis + 2], 0.5F);
    corners.values[axis] = box.values[axis] - half;
    corners.values[axis + 2] = box.values[axis] + half;
  }
  return corners;
}

/// Returns a coordinate clipped to the range from 0 to 1; NaN stays NaN.
GRAFT_OVERLAP_INLINE float clip_to_image(float value) {
  if (value < 0.F) return 0.F;
  return value > 1.F ? 1.F : value;
}

GRAFT_OVERLAP_INLINE float logistic(float x) { return 1.F / (1.F + expf(-x)); }

}  // namespace graft::ops

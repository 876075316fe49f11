// Tests whether one box suppresses another. The result is bitwise equal on the CPU and on a GPU. The operations have
// ONNX Runtime's order.
#pragma once

#ifdef __CUDACC__
#define GRAFT_OVERLAP_INLINE __host__ __device__ inline
#else
#define GRAFT_OVERLAP_INLINE inline
#endif

namespace graft::ops {

/// The two corners of a box, where `low` is not above `high`.
struct Box {
  float low[2];
  float high[2];
};

/// Returns a * b. __fmul_rn keeps the compiler from fusing the product with a following sum.
GRAFT_OVERLAP_INLINE float product(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}

/// Returns the corners of a box. `numbers` are y1, x1, y2, x2 of any two opposite corners or, if `is_center`, x, y,
/// width, height.
GRAFT_OVERLAP_INLINE Box box_of(const float (&numbers)[4], bool is_center) {
  Box box{};
  for (int axis = 0; axis < 2; ++axis) {
    const float first = numbers[axis];
    const float second = numbers[axis + 2];
    if (is_center) {
      const float half = product(second, 0.5F);
      box.low[axis] = first - half;
      box.high[axis] = first + half;
    } else {
      box.low[axis] = first < second ? first : second;
      box.high[axis] = first < second ? second : first;
    }
  }
  return box;
}

/// Returns whether the intersection of two boxes is more than `threshold` of their union. `extent` is added to each
/// width and height of boxes: 1 if a box includes the pixels of both corners, otherwise 0.
GRAFT_OVERLAP_INLINE bool overlaps(const Box& a, const Box& b, float threshold, float extent = 0) {
  float sizes[2];
  for (int axis = 0; axis < 2; ++axis) {
    const float low = a.low[axis] < b.low[axis] ? b.low[axis] : a.low[axis];
    const float high = a.high[axis] < b.high[axis] ? a.high[axis] : b.high[axis];
    sizes[axis] = high - low + extent;
    if (sizes[axis] <= 0) return false;
  }
  const float common = product(sizes[0], sizes[1]);
  const float area_a = product(a.high[0] - a.low[0] + extent, a.high[1] - a.low[1] + extent);
  const float area_b = product(b.high[0] - b.low[0] + extent, b.high[1] - b.low[1] + extent);
  const float either = area_a + area_b - common;
  if (common <= 0 || area_a <= 0 || area_b <= 0 || either <= 0) return false;
  return common / either > threshold;
}

}  // namespace graft::ops

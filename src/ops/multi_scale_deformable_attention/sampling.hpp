// The pixels that MultiScaleDeformableAttention reads for a point, and their weights: bitwise equal on the CPU and on a
// GPU.
#pragma once

#include <cmath>
#include <cstdint>

#ifdef __CUDACC__
#define GRAFT_ATTENTION_INLINE __host__ __device__ inline
#else
#define GRAFT_ATTENTION_INLINE inline
#endif

namespace graft::ops {

/// A map, and the index of its first pixel among the pixels of all maps.
struct AttentionLevel {
  std::int64_t first = 0;
  int height = 0;
  int width = 0;
};

/// Returns map `level`. The sizes are data and may have any value: they are clamped to 0 to 2^31-1, and the first pixel
/// to `pixels`.
template <class Size>
GRAFT_ATTENTION_INLINE AttentionLevel level_at(const Size* shapes, int level, std::int64_t pixels) {
  constexpr std::int64_t most = 0x7FFFFFFF;
  AttentionLevel result;
  for (int i = 0; i <= level; ++i) {
    result.first += std::int64_t{result.height} * result.width;
    if (result.first > pixels) result.first = pixels;
    const std::int64_t height = shapes[2 * i];
    const std::int64_t width = shapes[2 * i + 1];
    result.height = static_cast<int>(height < 0 ? 0 : height < most ? height : most);
    result.width = static_cast<int>(width < 0 ? 0 : width < most ? width : most);
  }
  return result;
}

/// Returns map `level` if the type of the sizes in `shapes` is known only at run time: i32 if `are_narrow` is true,
/// otherwise i64. `pixels` is the number of pixels of value.
GRAFT_ATTENTION_INLINE AttentionLevel level_at(const void* shapes, bool are_narrow, int level, std::int64_t pixels) {
  if (are_narrow) return level_at(static_cast<const std::int32_t*>(shapes), level, pixels);
  return level_at(static_cast<const std::int64_t*>(shapes), level, pixels);
}

/// The four pixels around a point, and their weights. A pixel outside the map or outside value is -1 and has weight 0.
struct AttentionCorners {
  int pixels[4] = {-1, -1, -1, -1};
  float weights[4] = {};
};

namespace deformable_attention {

/// Returns the position in pixels of a sampling location `share` along an axis of `size` pixels. __fmul_rn keeps the
/// compiler from fusing the product with the subtraction.
GRAFT_ATTENTION_INLINE float position(float share, int size) {
#ifdef __CUDA_ARCH__
  return __fmul_rn(share, static_cast<float>(size)) - 0.5F;
#else
  return share * static_cast<float>(size) - 0.5F;
#endif
}

}  // namespace deformable_attention

/// Returns the four pixels around the sampling location (`share_x`, `share_y`) and their weights times `weight`;
/// `pixels` is the number of pixels of value.
GRAFT_ATTENTION_INLINE AttentionCorners corners_at(float share_x, float share_y, float weight,
                                                   const AttentionLevel& level, std::int64_t pixels) {
  AttentionCorners corners;
  const float x = deformable_attention::position(share_x, level.width);
  const float y = deformable_attention::position(share_y, level.height);
  const bool is_inside =
      x > -1.F && x < static_cast<float>(level.width) && y > -1.F && y < static_cast<float>(level.height);
  if (!is_inside) return corners;  // NaN and infinity are not inside either.
  const float low_x = floorf(x);
  const float low_y = floorf(y);
  const float parts_x[2] = {1.F - (x - low_x), x - low_x};
  const float parts_y[2] = {1.F - (y - low_y), y - low_y};
  for (int corner = 0; corner < 4; ++corner) {
    const int right = corner % 2;
    const int down = corner / 2;
    const std::int64_t column = static_cast<std::int64_t>(low_x) + right;
    const std::int64_t row = static_cast<std::int64_t>(low_y) + down;
    const std::int64_t pixel = level.first + row * level.width + column;
    const bool is_there = column >= 0 && column < level.width && row >= 0 && row < level.height && pixel < pixels;
    if (!is_there) continue;
    corners.pixels[corner] = static_cast<int>(pixel);
    corners.weights[corner] = parts_x[right] * parts_y[down] * weight;
  }
  return corners;
}

}  // namespace graft::ops

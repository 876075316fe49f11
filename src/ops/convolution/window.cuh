// Finds the elements of a window that lie within the image.
#pragma once

namespace graft::ops {

/// Returns a mask whose bit i is set if element i of the window along one axis lies within the image. The window has
/// `kernel` elements, less than 32, which lie `dilation` apart. The first one lies at index `first` of the `size`
/// elements of the axis, possibly outside of it.
[[nodiscard]] __device__ inline unsigned elements_inside(int first, int size, int kernel, int dilation) {
  if (dilation == 1) {
    const int begin = ::min(::max(-first, 0), kernel);
    const int end = ::max(::min(size - first, kernel), begin);
    return (1U << static_cast<unsigned>(end)) - (1U << static_cast<unsigned>(begin));
  }
  unsigned mask = 0;
  for (int i = 0; i < kernel; ++i) {
    const int at = first + i * dilation;
    if (at >= 0 && at < size) mask |= 1U << static_cast<unsigned>(i);
  }
  return mask;
}

}  // namespace graft::ops

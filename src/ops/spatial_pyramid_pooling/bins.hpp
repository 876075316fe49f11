// The positions of the bins of a pyramid level along one axis, shared by the reference and the CUDA kernels.
#pragma once

#include <cstdint>

#include "graft/operator/elementwise.hpp"

namespace graft::ops {

enum class Binning : std::uint8_t {
  adaptive,  ///< PyTorch's rule: the smallest bins that cover everything, overlapping if n does not divide the size.
  window,    ///< The rule of He et al. 2015: a window of ceil(size/n) with a stride of floor(size/n).
  caffe,     ///< The rule of Caffe's SPPLayer: a window and stride of ceil(size/n), with the axis padded to n windows.
};

struct Bin {
  std::int64_t begin;
  std::int64_t end;
  /// The factor of this axis in the divisor of an average. The rule `caffe` counts padding as zeros.
  std::int64_t divisor;
};

/// Returns the number of padding elements that the rule `caffe` adds before an axis of `size` elements for `bins` bins.
[[nodiscard]] GRAFT_HOST_DEVICE inline std::int64_t caffe_padding(std::int64_t size, std::int64_t bins) {
  const std::int64_t kernel = (size + bins - 1) / bins;
  return (kernel * bins - size + 1) / 2;
}

/// Returns whether the rule `binning` divides an axis of `size` elements into `bins` bins with at least one element
/// each; otherwise the axis cannot be pooled. PyTorch's rule pools every size from 1 on, and Caffe refuses a padding as
/// large as the kernel.
[[nodiscard]] inline bool can_bin(Binning binning, std::int64_t size, std::int64_t bins) {
  if (size < 1) return false;
  if (binning == Binning::window) return size >= bins;
  return binning == Binning::adaptive || caffe_padding(size, bins) < (size + bins - 1) / bins;
}

/// Returns bin `index` of the `bins` bins into which the rule `binning` divides an axis of `size` elements. Requires
/// that can_bin() is true.
[[nodiscard]] GRAFT_HOST_DEVICE inline Bin bin_at(Binning binning, std::int64_t size, std::int64_t bins,
                                                  std::int64_t index) {
  const std::int64_t ceiling = (size + bins - 1) / bins;
  if (binning == Binning::caffe) {
    const std::int64_t first = index * ceiling - caffe_padding(size, bins);
    return {first < 0 ? 0 : first, first + ceiling < size ? first + ceiling : size, ceiling};
  }
  const bool adaptive = binning == Binning::adaptive;
  const std::int64_t begin = adaptive ? index * size / bins : index * (size / bins);
  const std::int64_t end = adaptive ? ((index + 1) * size + bins - 1) / bins : begin + ceiling;
  return {begin, end, end - begin};
}

}  // namespace graft::ops

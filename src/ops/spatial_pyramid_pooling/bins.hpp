// Where the bins of a pyramid level lie along one axis. Shared by reference and CUDA kernels.
#pragma once

#include <cstdint>

#include "graft/elementwise.hpp"

namespace graft::ops {

enum class Binning : std::uint8_t {
  adaptive,  ///< PyTorch: the smallest bins that cover everything, overlapping where n does not divide the size.
  window,    ///< He et al. 2015: a window of ceil(size/n) with a stride of floor(size/n).
  caffe,     ///< Caffe's SPPLayer: a window and stride of ceil(size/n), padded to n of them.
};

struct Bin {
  std::int64_t begin;
  std::int64_t end;
  std::int64_t divisor;  ///< Of an average, this axis' factor: caffe counts padding as zeros.
};

/// Elements before the axis that bins of `caffe` reach over.
[[nodiscard]] GRAFT_HOST_DEVICE inline std::int64_t caffe_padding(std::int64_t size, std::int64_t bins) {
  const std::int64_t kernel = (size + bins - 1) / bins;
  return (kernel * bins - size + 1) / 2;
}

/// Whether every bin has an element. The others' sizes cannot be pooled: PyTorch's binning always can, Caffe refuses a
/// padding as large as the kernel.
[[nodiscard]] inline bool can_bin(Binning binning, std::int64_t size, std::int64_t bins) {
  if (size < 1) return false;
  if (binning == Binning::window) return size >= bins;
  return binning == Binning::adaptive || caffe_padding(size, bins) < (size + bins - 1) / bins;
}

/// Of an axis that can be binned.
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

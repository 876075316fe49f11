// One over the norm: what the reference kernel and the CUDA kernels of L2Normalize share.
#pragma once

#include <cmath>

#include "graft/elementwise.hpp"
#include "ops/l2_normalize/l2_normalize.hpp"

namespace graft {

/// 1 / sqrt(x): exact to double's rounding on the host; on the GPU in float, with a relative error of at most 2^-22.9.
template <class T>
[[nodiscard]] GRAFT_HOST_DEVICE T inverse_root(T x) {
#ifdef __CUDA_ARCH__
  return rsqrtf(x);
#else
  return T(1) / std::sqrt(x);
#endif
}

/// The part of a definition that travels to the GPU.
struct InverseNorm {
  float epsilon;
  EpsilonMode mode;

  /// From the sum of squares. Written so that a NaN passes through, as the frameworks let it.
  template <class T>
  [[nodiscard]] GRAFT_HOST_DEVICE T operator()(T sum) const {
    const T bound = epsilon;
    if (mode == EpsilonMode::add) return inverse_root(sum + bound);
    if (mode == EpsilonMode::max) return inverse_root(sum < bound ? bound : sum);
    const T limit = T(1) / bound;
    const T inverse = inverse_root(sum);
    return inverse > limit ? limit : inverse;
  }
};

}  // namespace graft

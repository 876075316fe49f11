// One over the norm: what the reference kernel and the CUDA kernels of L2Normalize share.
#pragma once

#include <cmath>

#include "graft/elementwise.hpp"
#include "ops/l2_normalize/l2_normalize.hpp"

namespace graft {

/// The part of a definition that travels to the GPU.
struct InverseNorm {
  float epsilon;
  EpsilonMode mode;

  /// From the sum of squares. Written so that a NaN passes through, as the frameworks let it.
  template <class T>
  [[nodiscard]] GRAFT_HOST_DEVICE T operator()(T sum) const {
    using std::sqrt;
    const T bound = epsilon;
    if (mode == EpsilonMode::add) return T(1) / sqrt(sum + bound);
    if (mode == EpsilonMode::norm) return T(1) / (sqrt(sum) < bound ? bound : sqrt(sum));
    return T(1) / sqrt(sum < bound ? bound : sum);
  }
};

}  // namespace graft

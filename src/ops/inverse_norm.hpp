// One over the norm: what reference kernels and CUDA kernels of the operators that normalize share.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "graft/attribute.hpp"
#include "graft/elementwise.hpp"

namespace graft::ops {

/// Where the epsilon goes that keeps a zero vector from being divided by zero.
enum class EpsilonMode : std::uint8_t {
  max,   ///< x * rsqrt(max(sum(x^2), epsilon)): TensorFlow
  norm,  ///< x / max(sqrt(sum(x^2)), epsilon): PyTorch
  add,   ///< x / sqrt(sum(x^2) + epsilon): Caffe
};
constexpr std::array<Choice<EpsilonMode>, 3> choices(EpsilonMode /*tag*/) {
  return {{{"max", EpsilonMode::max}, {"norm", EpsilonMode::norm}, {"add", EpsilonMode::add}}};
}

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

}  // namespace graft::ops

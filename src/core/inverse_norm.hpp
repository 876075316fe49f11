// The reciprocal of a vector's norm, shared by the reference kernels and the CUDA kernels of the normalizing operators.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "graft/operator/attribute.hpp"
#include "graft/operator/elementwise.hpp"

namespace graft {

/// How epsilon enters the formula, so that a zero vector does not cause a division by zero.
enum class EpsilonMode : std::uint8_t {
  max,   ///< TensorFlow's formula: x * rsqrt(max(sum(x^2), epsilon)).
  norm,  ///< PyTorch's formula: x / max(sqrt(sum(x^2)), epsilon).
  add,   ///< Caffe's formula: x / sqrt(sum(x^2) + epsilon).
};
constexpr std::array<Choice<EpsilonMode>, 3> choices(EpsilonMode /*tag*/) {
  return {{{"max", EpsilonMode::max}, {"norm", EpsilonMode::norm}, {"add", EpsilonMode::add}}};
}

/// Returns 1 / sqrt(x): in double on the host; in float on the GPU, with a relative error of at most 2^-22.9.
template <class T>
[[nodiscard]] GRAFT_HOST_DEVICE T inverse_root(T x) {
#ifdef __CUDA_ARCH__
  return rsqrtf(x);
#else
  return T(1) / std::sqrt(x);
#endif
}

/// The attributes of a normalizing operator that its CUDA kernels receive.
struct InverseNorm {
  float epsilon;
  EpsilonMode mode;

  /// Returns the reciprocal norm of a vector whose sum of squares is `sum`. The comparisons propagate NaN, as the
  /// frameworks do.
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

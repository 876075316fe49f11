// From a sum of squares to the number that every element of a vector is multiplied by.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/vector.cuh"
#include "ops/l2_normalize/inverse_norm.hpp"

namespace graft {

struct Normalizer {
  InverseNorm inverse_norm;
  float x_scale;
  float y_scale;
  float ratio = x_scale / y_scale;

  /// Of i8 both the sum and the elements are in steps; the result is never NaN nor larger than Vector::times allows,
  /// and gives 0 where the exact result is NaN.
  template <class T>
  [[nodiscard]] __device__ float factor(float sum) const {
    if constexpr (std::is_same_v<T, std::int8_t>) {
      constexpr float saturates_every_step = 16384.F;
      const float exact = inverse_norm(sum * x_scale * x_scale) * ratio;
      return exact != exact ? 0.F : fminf(exact, saturates_every_step);
    } else {
      return inverse_norm(sum);
    }
  }
};

}  // namespace graft

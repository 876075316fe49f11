// Divides by the scale of an i8 tensor and rounds to its steps, in few instructions.
#pragma once

#include "kernels/vector.cuh"

namespace graft {

/// Quantizes f32 to i8 with exactly the same results as quantize_device(). The quotient is computed from the reciprocal
/// and corrected twice with its remainder, which yields the correctly rounded quotient (Markstein 1990, Computation of
/// Elementary Functions on the IBM RISC System/6000).
class Quantizer {
 public:
  Quantizer() = default;
  explicit Quantizer(float scale) : scale_(scale), reciprocal_(1 / scale) {
    // Within these limits the corrections neither overflow nor lose bits.
    constexpr float least = 1e-30F;
    constexpr float most = 1e30F;
    if (scale < least || scale > most) reciprocal_ = 0;
    most_ = 256 * scale;  // Larger values saturate.
  }

  /// Quantizes four values and returns the i8 results in one word, the first one in the lowest byte.
  [[nodiscard]] __device__ unsigned four(const float* values) const {
    float rounded[4];
    if (reciprocal_ == 0) {  // One branch serves all four values.
#pragma unroll
      for (int i = 0; i < 4; ++i) rounded[i] = divided(values[i]) + kernels::rounder;
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) rounded[i] = multiplied(values[i]) + kernels::rounder;
    }
    return kernels::pack_i8(rounded);
  }
  [[nodiscard]] __device__ std::int8_t one(float value) const {
    return quantize_device(reciprocal_ == 0 ? divided(value) : multiplied(value), 1.F);
  }

 private:
  // Both functions return the quotient before rounding, with a magnitude of at most 256; 0 for NaN.
  [[nodiscard]] __device__ float divided(float value) const {
    return value == value ? fminf(fmaxf(value / scale_, -256.F), 256.F) : 0.F;
  }
  [[nodiscard]] __device__ float multiplied(float value) const {
    const float bounded = fminf(fmaxf(value, -most_), most_);
    float quotient = bounded * reciprocal_;
#pragma unroll
    for (int i = 0; i < 2; ++i) quotient = fmaf(fmaf(-scale_, quotient, bounded), reciprocal_, quotient);
    return value == value ? quotient : 0.F;
  }

  float scale_ = 1;
  float reciprocal_ = 1;  ///< The value 1 / scale, or 0 if values must be divided by the scale.
  float most_ = 256;
};

}  // namespace graft

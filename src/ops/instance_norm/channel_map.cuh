// The linear map from x to y in a channel, computed from the channel's statistics.
#pragma once

#include <cstdint>
#include <limits>

#include "kernels/vector.cuh"
#include "ops/instance_norm/moments.cuh"

namespace graft::ops {

namespace detail {
inline constexpr float infinity = std::numeric_limits<float>::infinity();
inline constexpr float largest_float = std::numeric_limits<float>::max();
}  // namespace detail

/// The attributes and inputs of InstanceNorm that its CUDA kernels receive.
struct ChannelNorm {
  const float* scale;
  const float* bias;
  float epsilon;
  float slope;  ///< The factor of negative results.
  float x_scale;
  float y_scale;
  float power;          ///< The member `power` of Shift.
  float inverse_power;  ///< The value 1 / power, which is exact.
};

/// Computes y = activation(value * factor + summand), where value = x * power - origin as in Shift, and the activation
/// multiplies negative results by `slope`.
template <class T>
struct ChannelMap {
  Shift shift;
  float factor;
  float summand;
  float slope;

  __device__ ChannelMap(const ChannelNorm& norm, float scale, float bias, const Shift& origin, const Moments& moments)
      : shift(origin), slope(norm.slope) {
    const float mean = moments.mean();
    const float variance = __fdividef(moments.squares, moments.count) * norm.inverse_power * norm.inverse_power;
    // A NaN variance is treated as an overflow, and y becomes the bias. A channel that contains NaN has a NaN mean, so
    // its y is NaN.
    const float inverse = variance < detail::infinity ? rsqrtf(variance + norm.epsilon) : 0;
    factor = scale * inverse * norm.inverse_power;
    summand = fmaf(-mean, factor, bias);
  }

  template <int N>
  [[nodiscard]] __device__ Vector<T, N> operator()(const Vector<T, N>& x) const {
    float values[N];
    x.unpack(values);
#pragma unroll
    for (float& value : values) value = fmaf(fmaf(value, shift.power, -shift.origin), factor, summand);
    if (slope != 1) {
#pragma unroll
      for (float& value : values) value = value < 0 ? slope * value : value;
    }
    return Vector<T, N>::pack(values);
  }
};

/// Maps i8 quantization steps of x to steps of y. The linear function yields a fraction, 0 for the lowest and 1 for the
/// highest step of y (see pack_shares), or a number of steps if a leaky activation follows.
template <>
struct ChannelMap<std::int8_t> {
  float whole;  ///< The mean, rounded to a step.
  float factor;
  float summand;
  float span;
  float base;
  float slope;
  bool leaky;

  __device__ ChannelMap(const ChannelNorm& norm, float scale, float bias, const Shift& origin, const Moments& moments)
      : slope(norm.slope), leaky(norm.slope != 0 && norm.slope != 1) {
    const float mean = moments.mean();
    whole = rintf(origin.origin + mean);
    const float rest = origin.origin - whole + mean;
    const float variance = __fdividef(moments.squares, moments.count) * norm.x_scale * norm.x_scale;
    factor = scale * rsqrtf(variance + norm.epsilon) * __fdividef(norm.x_scale, norm.y_scale);
    if (fabsf(factor) > detail::largest_float) factor = copysignf(detail::largest_float, factor);
    summand = fmaf(-rest, factor, __fdividef(bias, norm.y_scale));
    if (factor != factor || summand != summand) factor = summand = 0;
    const float lowest = slope == 0 ? 0 : -128.F;
    span = 127.F - lowest;
    base = kernels::rounder + 128.F + lowest;
    if (leaky) return;
    const float share = slope == 0 ? 1 / 127.F : 1 / 255.F;
    factor *= share;
    summand = (summand - lowest) * share;
  }

  [[nodiscard]] __device__ float share_of(float value) const {
    const float share = fmaf(value, factor, summand);
    return leaky ? fmaf(share < 0 ? slope * share : share, 1 / 255.F, 128 / 255.F) : share;
  }

  template <int N>
  [[nodiscard]] __device__ Vector<std::int8_t, N> operator()(const Vector<std::int8_t, N>& x) const {
    if constexpr (N == 1) {
      const float share = share_of(static_cast<float>(x.raw) - whole);
      const float shares[4] = {share, share, share, share};
      return {static_cast<std::int8_t>(kernels::pack_shares(shares, span, base) & 0xFFU)};
    } else {
      const float offset = kernels::rounder + 128.F + whole;  // exact: an integer
      Vector<std::int8_t, N> result;
#pragma unroll
      for (int w = 0; w < Vector<std::int8_t, N>::words; ++w) {
        const unsigned biased = x.word(w) ^ 0x80808080U;
        float shares[4];
#pragma unroll
        for (unsigned i = 0; i < 4; ++i) {
          shares[i] = share_of(__uint_as_float(__byte_perm(biased, kernels::rounder_bits, 0x7640U + i)) - offset);
        }
        result.word(w) = kernels::pack_shares(shares, span, base);
      }
      return result;
    }
  }
};

}  // namespace graft::ops

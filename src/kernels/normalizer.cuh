// Computes, from the sum of squares of a vector, the factor by which its elements are multiplied, and applies channel
// weights.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/inverse_norm.hpp"
#include "kernels/strides.cuh"
#include "kernels/vector.cuh"

namespace graft {

struct Normalizer {
  InverseNorm inverse_norm;
  float x_scale;
  float y_scale;
  float ratio = x_scale / y_scale;

  /// Returns the factor for the elements of a vector with this sum of squares. For i8 the sum and the elements are in
  /// quantization steps. The factor is never NaN or larger than Vector::times() allows, and it is 0 where the exact
  /// result is NaN.
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

/// An additional factor for each channel. A channel consists of `inner` adjacent elements of a vector; if `inner` is 0,
/// all elements are one channel.
struct ChannelWeights {
  const float* values = nullptr;  ///< The weights; null for operators that only normalize.
  std::int64_t inner = 0;
  bool aligned = false;  ///< Whether the address `values` is a multiple of 16 bytes.

  /// Returns the channel of an element of a vector. `Index` is the integer type of the result; `inner` must fit into
  /// it.
  template <class Index>
  [[nodiscard]] __device__ Index channel_of(Index element) const {
    const auto group = static_cast<Index>(inner);
    if (group <= 1) return group * element;
    if constexpr (sizeof(Index) == 4)
      return static_cast<Index>(static_cast<unsigned>(element) / static_cast<unsigned>(group));
    else
      return divide(element, group);
  }
  /// Returns factor * weight. For i8 the weight is bounded, because exact results saturate long before the bound, and a
  /// NaN weight becomes 0.
  template <class T>
  [[nodiscard]] static __device__ float product(float factor, float weight) {
    if constexpr (std::is_same_v<T, std::int8_t>) {
      constexpr float bound = 1e30F;
      return factor * (weight != weight ? 0.F : fminf(fmaxf(weight, -bound), bound));
    } else {
      return factor * weight;
    }
  }

  /// Returns the weight of an element of a vector, for use in scale(); 1 if there are no weights.
  template <class Index>
  [[nodiscard]] __device__ float weight(Index element) const {
    return values == nullptr ? 1.F : values[channel_of(element)];
  }
  /// Returns N adjacent elements of the tensor, each multiplied by its factor and by `weight`. The elements belong to N
  /// different vectors and have the same index in their vectors.
  template <class T, int N>
  [[nodiscard]] __device__ Vector<T, N> scale(const Vector<T, N>& vector, const float (&factors)[N],
                                              float weight) const {
    float products[N];
#pragma unroll
    for (int i = 0; i < N; ++i) products[i] = product<T>(factors[i], weight);
    return values == nullptr ? vector.times(products) : vector.times_any(products);
  }
  /// Returns N adjacent elements of one vector, multiplied by `factor` and by the weights of their channels. `element`
  /// is the index of the first one in its vector. Elements before index 0 and from `end` on do not belong to the
  /// vector.
  template <class T, int N, class Index>
  [[nodiscard]] __device__ Vector<T, N> scale_run(const Vector<T, N>& vector, float factor, Index element,
                                                  Index end) const {
    float products[N];
    const Index channel = channel_of(::max(element, Index{0}));
    Index rest = element - channel * static_cast<Index>(inner);  // Negative before element 0.
    if (inner == 0 || rest + N <= static_cast<Index>(inner)) {
      const float weight = values == nullptr ? factor : product<T>(factor, values[channel]);
#pragma unroll
      for (int i = 0; i < N; ++i) products[i] = weight;
    } else if (N % 4 == 0 && inner == 1 && aligned && element % 4 == 0 && element >= 0 && element + N <= end) {
#pragma unroll
      for (int i = 0; i < N; i += 4) {
        const float4 four = *reinterpret_cast<const float4*>(values + element + i);
        const float weights[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
        for (int k = 0; k < 4 && i + k < N; ++k) products[i + k] = product<T>(factor, weights[k]);
      }
    } else {
      Index next = channel;
#pragma unroll
      for (int i = 0; i < N; ++i) {
        products[i] = element + i < end ? product<T>(factor, values[next]) : 0;
        if (++rest == static_cast<Index>(inner)) {
          rest = 0;
          ++next;
        }
      }
    }
    return values == nullptr ? vector.times(products) : vector.times_any(products);
  }
};

/// Returns its argument if the kernel is compiled with weights (Weighted), and no weights otherwise. There are two
/// versions of each kernel, because a branch before every vector would take registers from operators without weights
/// (on an H200 i8 columns took 2.5 times as long).
template <bool Weighted>
[[nodiscard]] __device__ ChannelWeights weights_of_kernel(const ChannelWeights& given) {
  if constexpr (!Weighted) return {};
  ChannelWeights weights = given;
  __builtin_assume(weights.values != nullptr);
  return weights;
}

/// Calls `f` with std::true_type if there are weights and with std::false_type otherwise, to select the version of a
/// kernel.
template <class F>
[[nodiscard]] Status with_weighted(const ChannelWeights& weights, F&& f) {
  return weights.values != nullptr ? f(std::true_type{}) : f(std::false_type{});
}

}  // namespace graft

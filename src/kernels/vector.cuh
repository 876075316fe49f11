// Vectors of elements that one instruction loads or stores, and their conversion to and from float.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <string>
#include <type_traits>

#include "graft/operator/dtype.hpp"
#include "graft/operator/status.hpp"

namespace graft {

/// Calls `f` with a value of the device type that stores `dtype`, one of the types in which kernels compute. Returns
/// unsupported for other types.
template <class F>
[[nodiscard]] Status dispatch_device(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32: return f(float{});
    case DType::f16: return f(__half{});
    case DType::bf16: return f(__nv_bfloat16{});
    case DType::i8: return f(std::int8_t{});
    default:
      return unsupported("the CUDA kernels compute in f32, f16, bf16 and i8, found " + std::string(to_string(dtype)));
  }
}

/// Calls `f` with the address of a size output as a pointer to its type.
template <class F>
[[nodiscard]] Status dispatch_size(DType dtype, void* output, F&& f) {
  if (dtype == DType::i32) return f(static_cast<std::int32_t*>(output));
  return f(static_cast<std::int64_t*>(output));
}

/// The number of elements in 128 bits, the widest access.
template <class T>
inline constexpr int widest = 16 / static_cast<int>(sizeof(T));

/// Rounds a real number to the steps of an i8 tensor: to nearest, ties to even, saturated. NaN becomes 0.
[[nodiscard]] __device__ inline std::int8_t quantize_device(float value, float scale) {
  const float steps = value / scale;
  if (steps != steps) return 0;
  return static_cast<std::int8_t>(__float2int_rn(fminf(fmaxf(steps, -128.F), 127.F)));
}

namespace kernels {

// Adding 1.5 * 2^23 to a float leaves its nearest integer, ties to even, in the low bits, and subtracting it again is
// exact. Both operations replace instructions that convert one number, which run at a quarter of the speed or less.
inline constexpr float rounder = 12582912.F;
inline constexpr unsigned rounder_bits = 0x4B400000U;

/// Converts four i8 elements to float.
__device__ inline void unpack_i8(unsigned word, float* values) {
  const unsigned biased = word ^ 0x80808080U;
#pragma unroll
  for (unsigned i = 0; i < 4; ++i) {
    values[i] = __uint_as_float(__byte_perm(biased, rounder_bits, 0x7640U + i)) - (rounder + 128.F);
  }
}

__device__ inline unsigned saturate_i8(const int* steps) {
  unsigned high;
  unsigned all;
  asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, 0;" : "=r"(high) : "r"(steps[3]), "r"(steps[2]));
  asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;" : "=r"(all) : "r"(steps[1]), "r"(steps[0]), "r"(high));
  return all;
}

/// Converts four numbers of quantization steps (real numbers divided by the scale) to i8. Each is passed as steps +
/// rounder, and none may be NaN.
__device__ inline unsigned pack_i8(const float* rounded) {
  int steps[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) steps[i] = __float_as_int(rounded[i]) - static_cast<int>(rounder_bits);
  return saturate_i8(steps);
}

/// Rounds four numbers of quantization steps to i8: to nearest, ties to even, saturated. NaN becomes 0. From compute
/// capability 8.6 on, each pair takes one instruction (F2IP), which ran at half the speed of a multiplication or better
/// on an H200.
__device__ inline unsigned round_to_i8(const float* values) {
  int steps[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) steps[i] = __float2int_rn(values[i]);
  return saturate_i8(steps);
}

/// Converts four numbers of quantization steps to i8. Each is passed as a fraction, 0 for -128 steps and 1 for 127
/// steps, and none may be NaN; fractions outside of 0 to 1 are clamped at no cost. Rounding leaves the step plus 128 in
/// the low byte. For another range of steps, `span` is its length, and `base` is its first step plus 128 plus
/// `rounder`.
__device__ inline unsigned pack_shares(const float* shares, float span = 255.F, float base = rounder) {
  unsigned bytes[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) bytes[i] = __float_as_uint(fmaf(__saturatef(shares[i]), span, base));
  const unsigned low = __byte_perm(bytes[0], bytes[1], 0x0040U);
  const unsigned high = __byte_perm(bytes[2], bytes[3], 0x0040U);
  return __byte_perm(low, high, 0x5410U) ^ 0x80808080U;
}

}  // namespace kernels

/// A vector of N elements: one element, or as many as fill 32, 64 or 128 bits. Its address must be a multiple of its
/// size.
template <class T, int N>
struct Vector {
  static constexpr int bytes = N * static_cast<int>(sizeof(T));
  static constexpr int words = bytes < 4 ? 1 : bytes / 4;
  static_assert(N == 1 || bytes == 4 || bytes == 8 || bytes == 16);
  using Words = std::conditional_t<bytes == 4, unsigned, std::conditional_t<bytes == 8, uint2, uint4>>;
  using Raw = std::conditional_t<N == 1, T, Words>;
  Raw raw;

  /// Returns a 32-bit word of a vector of more than one element.
  [[nodiscard]] __device__ unsigned& word(int index) { return reinterpret_cast<unsigned*>(&raw)[index]; }
  [[nodiscard]] __device__ unsigned word(int index) const { return reinterpret_cast<const unsigned*>(&raw)[index]; }

  [[nodiscard]] __device__ static Vector zero() {
    if constexpr (N == 1)
      return {T(0.F)};
    else
      return {};
  }
  [[nodiscard]] __device__ static Vector of(const T (&elements)[N]) {
    Vector result;
#pragma unroll
    for (int i = 0; i < N; ++i) reinterpret_cast<T*>(&result.raw)[i] = elements[i];
    return result;
  }
  [[nodiscard]] __device__ static Vector load(const T* address) { return {*reinterpret_cast<const Raw*>(address)}; }
  /// Loads the first `count` elements one by one, and sets the other elements to zero.
  [[nodiscard]] __device__ static Vector load_first(const T* address, int count) {
    T elements[N];
#pragma unroll
    for (int i = 0; i < N; ++i) elements[i] = i < count ? address[i] : T(0.F);
    return of(elements);
  }
  __device__ void store(T* address) const { *reinterpret_cast<Raw*>(address) = raw; }

  /// Stores with a hint that the cache should evict the line first. It suits lines of which a block fills only a part,
  /// so that they do not displace lines that are still being filled.
  __device__ void store_streaming(T* address) const { __stcs(reinterpret_cast<Raw*>(address), raw); }

  /// Converts the elements to float; i8 is converted to numbers of quantization steps.
  __device__ void unpack(float (&values)[N]) const {
    if constexpr (N == 1) {
      values[0] = static_cast<float>(raw);
    } else {
#pragma unroll
      for (int w = 0; w < words; ++w) {
        const unsigned bits = word(w);
        if constexpr (std::is_same_v<T, float>) {
          values[w] = __uint_as_float(bits);
        } else if constexpr (std::is_same_v<T, __half>) {
          const float2 pair = __half22float2(*reinterpret_cast<const __half2*>(&bits));
          values[2 * w] = pair.x;
          values[2 * w + 1] = pair.y;
        } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
          values[2 * w] = __uint_as_float(bits << 16U);
          values[2 * w + 1] = __uint_as_float(bits & 0xFFFF0000U);
        } else {
          kernels::unpack_i8(bits, values + 4 * w);
        }
      }
    }
  }

  /// Converts floats to elements; for i8, the floats are numbers of quantization steps.
  [[nodiscard]] __device__ static Vector pack(const float (&values)[N]) {
    if constexpr (N == 1 && std::is_same_v<T, std::int8_t>) {
      return {quantize_device(values[0], 1.F)};
    } else if constexpr (N == 1) {
      return {static_cast<T>(values[0])};
    } else {
      Vector result;
#pragma unroll
      for (int w = 0; w < words; ++w) {
        if constexpr (std::is_same_v<T, float>) {
          result.word(w) = __float_as_uint(values[w]);
        } else if constexpr (std::is_same_v<T, __half>) {
          const __half2 pair = __floats2half2_rn(values[2 * w], values[2 * w + 1]);
          result.word(w) = *reinterpret_cast<const unsigned*>(&pair);
        } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
          const __nv_bfloat162 pair = __floats2bfloat162_rn(values[2 * w], values[2 * w + 1]);
          result.word(w) = *reinterpret_cast<const unsigned*>(&pair);
        } else {
          result.word(w) = kernels::round_to_i8(values + 4 * w);
        }
      }
      return result;
    }
  }

  /// Prevents the compiler from keeping the unpacked elements until their next use, which would need twice the
  /// registers or more.
  __device__ void forget() {
    if constexpr (N > 1) {
#pragma unroll
      for (int w = 0; w < words; ++w) asm volatile("" : "+r"(word(w)));
    }
  }

  /// Returns every element multiplied by its factor; i8 is computed in steps.
  [[nodiscard]] __device__ Vector times(const float (&factors)[N]) const {
    float values[N];
    unpack(values);
#pragma unroll
    for (int i = 0; i < N; ++i) values[i] *= factors[i];
    return pack(values);
  }
  [[nodiscard]] __device__ Vector times(float factor) const {
    float factors[N];
#pragma unroll
    for (float& each : factors) each = factor;
    return times(factors);
  }

  /// Returns every element multiplied by its factor, which may have any finite size. For i8 this is slightly slower.
  [[nodiscard]] __device__ Vector times_any(const float (&factors)[N]) const {
    if constexpr (N > 1 && std::is_same_v<T, std::int8_t>) {
      float values[N];
      unpack(values);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        // The bits of positive floats, read as integers, increase with the number, and the bits of negative floats are
        // smaller than all of these. At the bound, every step already saturates.
        constexpr int low_enough = static_cast<int>(kernels::rounder_bits) - (1 << 20);
        const int bits = __float_as_int(fmaf(values[i], factors[i], kernels::rounder));
        values[i] = __int_as_float(::max(bits, low_enough));
      }
      Vector result;
#pragma unroll
      for (int w = 0; w < words; ++w) result.word(w) = kernels::pack_i8(values + 4 * w);
      return result;
    } else {
      return times(factors);
    }
  }

  /// Returns the vector with every element but the first `count` set to zero.
  [[nodiscard]] __device__ Vector first(int count) const {
    if (count >= N) return *this;
    if constexpr (N == 1) {
      return zero();
    } else {
      constexpr int per_word = 4 / static_cast<int>(sizeof(T));
      Vector result = *this;
#pragma unroll
      for (int w = 0; w < words; ++w) {
        const int kept = ::min(::max(count - w * per_word, 0), per_word) * static_cast<int>(sizeof(T)) * 8;
        result.word(w) &= kept == 32 ? 0xFFFFFFFFU : (1U << static_cast<unsigned>(kept)) - 1U;
      }
      return result;
    }
  }

  /// Returns the vector with every element before index `begin`, and from index `end` on, set to zero.
  [[nodiscard]] __device__ Vector between(int begin, int end) const {
    static_assert(N > 1);
    constexpr int per_word = 4 / static_cast<int>(sizeof(T));
    Vector result = first(end);
#pragma unroll
    for (int w = 0; w < words; ++w) {
      const int cut = ::min(::max(begin - w * per_word, 0), per_word) * static_cast<int>(sizeof(T)) * 8;
      result.word(w) &= cut == 32 ? 0U : 0xFFFFFFFFU << static_cast<unsigned>(cut);
    }
    return result;
  }
  /// Stores the elements from index `begin` up to `end`, one by one.
  __device__ void store_between(T* address, int begin, int end) const {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if (i >= begin && i < end) address[i] = reinterpret_cast<const T*>(&raw)[i];
    }
  }

  /// Returns the sum of squares; i8 is computed in steps.
  [[nodiscard]] __device__ float sum_of_squares() const {
    if constexpr (N > 1 && std::is_same_v<T, std::int8_t>) {
      int sum = 0;  // exact
#pragma unroll
      for (int w = 0; w < words; ++w) sum = __dp4a(static_cast<int>(word(w)), static_cast<int>(word(w)), sum);
      return static_cast<float>(sum);
    } else {
      float values[N];
      unpack(values);
      float sum = 0;
#pragma unroll
      for (int i = 0; i < N; ++i) sum += values[i] * values[i];
      return sum;
    }
  }
};

/// Adds the squares of the elements of R vectors to `sums`: sums[i] gets the squares of element i of each vector. i8 is
/// computed in quantization steps.
template <class T, int N, int R>
__device__ void add_squares(const Vector<T, N> (&vectors)[R], float (&sums)[N]) {
  if constexpr (N > 1 && std::is_same_v<T, std::int8_t>) {
    static_assert(R % 4 == 0);
    int exact[N] = {};
#pragma unroll
    for (int j = 0; j < R; j += 4) {
#pragma unroll
      for (int w = 0; w < Vector<T, N>::words; ++w) {
        // Four rows of four bytes are transposed, so that one instruction squares and adds four rows of a column.
        const unsigned a = vectors[j].word(w);
        const unsigned b = vectors[j + 1].word(w);
        const unsigned c = vectors[j + 2].word(w);
        const unsigned d = vectors[j + 3].word(w);
        const unsigned ab_low = __byte_perm(a, b, 0x5140U);
        const unsigned ab_high = __byte_perm(a, b, 0x7362U);
        const unsigned cd_low = __byte_perm(c, d, 0x5140U);
        const unsigned cd_high = __byte_perm(c, d, 0x7362U);
        const unsigned columns[4] = {__byte_perm(ab_low, cd_low, 0x5410U), __byte_perm(ab_low, cd_low, 0x7632U),
                                     __byte_perm(ab_high, cd_high, 0x5410U), __byte_perm(ab_high, cd_high, 0x7632U)};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int column = static_cast<int>(columns[i]);
          exact[4 * w + i] = __dp4a(column, column, exact[4 * w + i]);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < N; ++i) sums[i] += static_cast<float>(exact[i]);
  } else {
#pragma unroll
    for (int j = 0; j < R; ++j) {
      float values[N];
      vectors[j].unpack(values);
#pragma unroll
      for (int i = 0; i < N; ++i) sums[i] += values[i] * values[i];
    }
  }
}

}  // namespace graft

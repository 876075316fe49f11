// The reductions of the elements of a bin by SpatialPyramidPooling: maximum and average.
#pragma once

#include <cstdint>

#include "kernels/quantizer.cuh"
#include "kernels/vector.cuh"

namespace graft::ops::detail {

struct Maximum {
  /// The type in which reduced columns are stored in shared memory.
  template <class T>
  using Stored = T;
  template <class T>
  using Value = std::conditional_t<std::is_same_v<T, std::int8_t>, int, float>;
  template <class V = float>
  [[nodiscard]] static __device__ V identity() {
    if constexpr (std::is_same_v<V, int>) return -128;
    return -INFINITY;
  }
  [[nodiscard]] static __device__ int apply(int a, int b) { return ::max(a, b); }
  [[nodiscard]] static __device__ float apply(float a, float b) {
#if __CUDA_ARCH__ >= 800
    float result;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
#else
    return a != a || a > b ? a : b;
#endif
  }
  [[nodiscard]] static __device__ float finish(float value, float /*count*/) { return value; }
};

struct Average {
  template <class T>
  using Stored = float;
  template <class T>
  using Value = float;
  template <class V = float>
  [[nodiscard]] static __device__ V identity() {
    return 0;
  }
  [[nodiscard]] static __device__ float apply(float a, float b) { return a + b; }
  [[nodiscard]] static __device__ float finish(float value, float count) { return value / count; }
};

template <class T>
__device__ T to_output(float value, float x_scale, const Quantizer& quantizer) {
  if constexpr (std::is_same_v<T, std::int8_t>) return quantizer.one(value * x_scale);
  return static_cast<T>(value);
}

/// Returns the reduced value of this lane's group of 2^log2_lanes lanes. All lanes of a warp call this function
/// together.
template <class Reduce, class V>
__device__ V reduce_lanes(V value, int log2_lanes) {
  for (int distance = (1 << log2_lanes) / 2; distance > 0; distance /= 2) {
    value = Reduce::apply(value, __shfl_xor_sync(0xFFFFFFFFU, value, distance));
  }
  return value;
}

/// Returns the reduced value of all N values, a power of two. Overwrites `values`.
template <class Reduce, class V, int N>
[[nodiscard]] __device__ V reduce_all(V (&values)[N]) {
#pragma unroll
  for (int distance = N / 2; distance > 0; distance /= 2) {
#pragma unroll
    for (int i = 0; i < distance; ++i) values[i] = Reduce::apply(values[i], values[i + distance]);
  }
  return values[0];
}

/// Reduces vectors that are added one after the other: store() writes one result per column, total() returns one result
/// for all columns.
template <class T, class Reduce, int N>
class Columns {
 public:
  using Stored = typename Reduce::template Stored<T>;
  using Value = typename Reduce::template Value<T>;
  __device__ Columns() {
#pragma unroll
    for (Value& value : values_) value = Reduce::template identity<Value>();
  }
  __device__ void add(const Vector<T, N>& vector) {
    float each[N];
    vector.unpack(each);
#pragma unroll
    for (int i = 0; i < N; ++i) values_[i] = Reduce::apply(values_[i], static_cast<Value>(each[i]));
  }
  __device__ void store(Stored* to) const {
#pragma unroll
    for (int i = 0; i < N; ++i) to[i] = static_cast<Stored>(values_[i]);
  }
  [[nodiscard]] __device__ float total() const {
    Value values[N];
#pragma unroll
    for (int i = 0; i < N; ++i) values[i] = values_[i];
    return static_cast<float>(reduce_all<Reduce>(values));
  }

 private:
  Value values_[N];
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
/// Computes maxima as Columns does, for 16-bit floats in pairs.
template <class T, int N>
class PairColumns {
 public:
  using Pair = std::conditional_t<std::is_same_v<T, __half>, __half2, __nv_bfloat162>;
  __device__ PairColumns() {
#pragma unroll
    for (int w = 0; w < N / 2; ++w) words_.word(w) = std::is_same_v<T, __half> ? 0xFC00FC00U : 0xFF80FF80U;
  }
  __device__ void add(const Vector<T, N>& vector) {
#pragma unroll
    for (int w = 0; w < N / 2; ++w) words_.word(w) = larger(words_.word(w), vector.word(w));
  }
  /// Stores the maximum of each column. `to` must lie at a multiple of four bytes.
  __device__ void store(T* to) const {
#pragma unroll
    for (int w = 0; w < N / 2; ++w) reinterpret_cast<unsigned*>(to)[w] = words_.word(w);
  }
  [[nodiscard]] __device__ float total() const {
    Vector<T, 2> all;
    all.word(0) = words_.word(0);
#pragma unroll
    for (int w = 1; w < N / 2; ++w) all.word(0) = larger(all.word(0), words_.word(w));
    float values[2];
    all.unpack(values);
    return Maximum::apply(values[0], values[1]);
  }

 private:
  [[nodiscard]] static __device__ unsigned larger(unsigned a, unsigned b) {
    const Pair result = __hmax2_nan(*reinterpret_cast<const Pair*>(&a), *reinterpret_cast<const Pair*>(&b));
    return *reinterpret_cast<const unsigned*>(&result);
  }
  Vector<T, N> words_;
};
template <int N>
requires(N > 1) class Columns<__half, Maximum, N> : public PairColumns<__half, N> {
};
template <int N>
requires(N > 1) class Columns<__nv_bfloat16, Maximum, N> : public PairColumns<__nv_bfloat16, N> {
};
#endif

/// Computes maxima of i8 columns. Bytes are compared as the upper halves of 16-bit numbers, whose order does not depend
/// on the lower halves unless the bytes are equal.
template <int N>
requires(N > 1) class Columns<std::int8_t, Maximum, N> {
 public:
  __device__ Columns() {
#pragma unroll
    for (int w = 0; w < N / 4; ++w) odd_[w] = even_[w] = 0x80008000U;
  }
  __device__ void add(const Vector<std::int8_t, N>& vector) {
#pragma unroll
    for (int w = 0; w < N / 4; ++w) {
      odd_[w] = __vmaxs2(odd_[w], vector.word(w));
      even_[w] = __vmaxs2(even_[w], vector.word(w) << 8U);
    }
  }
  /// Stores the maximum of each column. `to` must lie at a multiple of four bytes.
  __device__ void store(std::int8_t* to) const {
#pragma unroll
    for (int w = 0; w < N / 4; ++w) reinterpret_cast<unsigned*>(to)[w] = __byte_perm(even_[w], odd_[w], 0x7351U);
  }
  [[nodiscard]] __device__ float total() const {
    unsigned pair = 0x80008000U;
#pragma unroll
    for (int w = 0; w < N / 4; ++w) pair = __vmaxs2(pair, __vmaxs2(odd_[w], even_[w]));
    return static_cast<float>(::max(static_cast<int>(pair) >> 24, static_cast<int>(pair << 16U) >> 24));
  }

 private:
  unsigned odd_[N / 4];
  unsigned even_[N / 4];
};

/// Computes sums of i8 columns, in integers.
template <int N>
requires(N > 1) class Columns<std::int8_t, Average, N> {
 public:
  __device__ void add(const Vector<std::int8_t, N>& vector) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      sums_[i] = __dp4a(static_cast<int>(vector.word(i / 4)), 1 << (8 * (i % 4)), sums_[i]);
    }
  }
  __device__ void store(float* to) const {
#pragma unroll
    for (int i = 0; i < N; ++i) to[i] = static_cast<float>(sums_[i]);
  }
  [[nodiscard]] __device__ float total() const {
    int sum = 0;
#pragma unroll
    for (const int each : sums_) sum += each;
    return static_cast<float>(sum);
  }

 private:
  int sums_[N] = {};
};

}  // namespace graft::ops::detail

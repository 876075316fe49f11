// Atomic reductions of many threads into global memory.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "core/scatter.hpp"

namespace graft {

/// N elements that one instruction loads or stores.
template <class T, int N>
struct alignas(N * sizeof(T)) Elements {
  T at[N];
};

/// Atomically replaces `*y` with the sum, minimum or maximum of `*y` and `update`. i64 uses CUDA's instructions for
/// 64-bit types.
__device__ inline void reduce_integer(ScatterReduction reduction, std::int64_t* y, std::int64_t update) {
  static_assert(sizeof(long long) == sizeof(std::int64_t));
  auto* number = reinterpret_cast<long long*>(y);
  if (reduction == ScatterReduction::add) {
    atomicAdd(reinterpret_cast<unsigned long long*>(y), static_cast<unsigned long long>(update));
  } else if (reduction == ScatterReduction::min) {
    atomicMin(number, static_cast<long long>(update));
  } else {
    atomicMax(number, static_cast<long long>(update));
  }
}
__device__ inline void reduce_integer(ScatterReduction reduction, std::int32_t* y, std::int32_t update) {
  if (reduction == ScatterReduction::add) {
    atomicAdd(y, update);
  } else if (reduction == ScatterReduction::min) {
    atomicMin(y, update);
  } else {
    atomicMax(y, update);
  }
}

/// Atomically adds N adjacent elements to y. From compute capability 9.0 on this is a single instruction.
template <class T, int N>
__device__ void add_vector(T* y, const Elements<T, N>& update) {
  [[maybe_unused]] const auto* words = reinterpret_cast<const unsigned*>(update.at);
#if __CUDA_ARCH__ >= 900
  if constexpr (std::is_same_v<T, float>) {
    asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(y), "f"(update.at[0]),
                 "f"(update.at[1]), "f"(update.at[2]), "f"(update.at[3])
                 : "memory");
  } else if constexpr (std::is_same_v<T, __half>) {
    asm volatile("red.relaxed.gpu.global.add.noftz.v4.f16x2 [%0], {%1, %2, %3, %4};" ::"l"(y), "r"(words[0]),
                 "r"(words[1]), "r"(words[2]), "r"(words[3])
                 : "memory");
  } else {
    asm volatile("red.relaxed.gpu.global.add.noftz.v4.bf16x2 [%0], {%1, %2, %3, %4};" ::"l"(y), "r"(words[0]),
                 "r"(words[1]), "r"(words[2]), "r"(words[3])
                 : "memory");
  }
#else
  if constexpr (std::is_same_v<T, float>) {
#pragma unroll
    for (int i = 0; i < N; ++i) atomicAdd(y + i, update.at[i]);
  } else {
    using Pair = std::conditional_t<std::is_same_v<T, __half>, __half2, __nv_bfloat162>;
#pragma unroll
    for (int i = 0; i < N / 2; ++i) {
      atomicAdd(reinterpret_cast<Pair*>(y) + i, *reinterpret_cast<const Pair*>(words + i));
    }
  }
#endif
}

/// Atomically reduces N adjacent elements into y from element `place` on; y has `count` elements. Integers are reduced
/// with sum, minimum or maximum, floating-point numbers with sum.
template <class T, int N>
__device__ void reduce_atomically(ScatterReduction reduction, T* y, std::int64_t place, std::int64_t count,
                                  const Elements<T, N>& update) {
  T* const to = y + place;
  if constexpr (std::is_integral_v<T>) {
#pragma unroll
    for (int i = 0; i < N; ++i) reduce_integer(reduction, to + i, update.at[i]);
  } else if constexpr (N > 1) {
    add_vector<T, N>(to, update);
  } else if constexpr (std::is_same_v<T, float>) {
    atomicAdd(to, update.at[0]);
  } else {
    // The memory adds pairs of 16-bit numbers, whereas adding a single one is a loop of two or more accesses (256 us
    // against 114 us for 6.4 million on an H200). So -0, which changes no number, is added to the adjacent element.
    // Elements at the ends of y may have no adjacent element.
    using Pair = std::conditional_t<std::is_same_v<T, __half>, __half2, __nv_bfloat162>;
    const bool is_upper = reinterpret_cast<std::uintptr_t>(to) % sizeof(Pair) != 0;
    if (is_upper ? place == 0 : place + 1 == count) {
      atomicAdd(to, update.at[0]);
      return;
    }
    const T nothing = static_cast<T>(-0.F);
    Pair pair;
    pair.x = is_upper ? nothing : update.at[0];
    pair.y = is_upper ? update.at[0] : nothing;
    atomicAdd(reinterpret_cast<Pair*>(to - (is_upper ? 1 : 0)), pair);
  }
}

}  // namespace graft

// Matrix products of 16 x 8 tiles on tensor cores, their fragments, and asynchronous copies to shared memory.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <cstdint>
#include <type_traits>

namespace graft {

[[nodiscard]] __device__ inline unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

/// Copies `bytes` bytes from global to shared memory, and writes zeros to the remaining bytes up to 16. The copy is
/// synchronous on compute capability 7.5.
__device__ inline void copy_async(unsigned to, const void* from, int bytes) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
#else
  unsigned words[4] = {};
  if (bytes == 16) {
    const uint4 all = *static_cast<const uint4*>(from);
    words[0] = all.x;
    words[1] = all.y;
    words[2] = all.z;
    words[3] = all.w;
  } else {
    for (int i = 0; i < bytes; ++i) {
      words[i / 4] |= static_cast<unsigned>(static_cast<const std::uint8_t*>(from)[i]) << (8U * (i % 4));
    }
  }
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(words[0]), "r"(words[1]), "r"(words[2]),
               "r"(words[3])
               : "memory");
#endif
}

/// Copies 4 bytes from global to shared memory if `exists` is true, and writes zeros to shared memory otherwise.
__device__ inline void copy_word_async(unsigned to, const void* from, bool exists) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(exists ? 4 : 0) : "memory");
#else
  const unsigned word = exists ? *static_cast<const unsigned*>(from) : 0;
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(to), "r"(word) : "memory");
#endif
}

/// Commits the copies since the last call as a group (cp.async.commit_group).
__device__ inline void commit_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/// Waits until at most the last `Pending` groups of copies of this thread are incomplete.
template <int Pending>
__device__ void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
#endif
}

/// Loads four 8 x 8 matrices of 16-bit elements, or 8 x 16 matrices of bytes, from shared memory: `to[i]` receives
/// matrix i. Lanes 8 i to 8 i + 7 pass the addresses in shared memory, not generic pointers, of its eight rows of 16
/// bytes.
__device__ inline void load_matrices(unsigned (&to)[4], unsigned row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(row));
}

/// Computes sum += a * b for 16 rows of a and 8 columns of b, over 8 products each. The factors are rounded to 10 bits
/// of fraction (TF32).
__device__ inline void multiply_add_tf32(float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  asm volatile("trap;");  // The host selects another kernel for such devices.
#endif
}
[[nodiscard]] __device__ inline unsigned to_tf32(float value) {
#if __CUDA_ARCH__ >= 800
  unsigned result;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(result) : "f"(value));
  return result;
#else
  return __float_as_uint(value);
#endif
}

/// A number as the sum of two TF32 numbers, which together represent it with 20 bits of fraction, because tensor cores
/// ignore the lower bits of a float. Infinity is stored in `high`. The constructor uses masks, because conversion
/// instructions take twice the time or more.
struct TwoTf32 {
  unsigned high;
  unsigned low;

  __device__ explicit TwoTf32(float value) {
    high = __float_as_uint(value) & 0xFFFFE000U;
    const float rest = value - __uint_as_float(high);
    low = __float_as_uint(fabsf(value) == INFINITY ? 0.F : rest);
  }
};

/// The type in which products of T are summed.
template <class T>
using SumOf = std::conditional_t<std::is_same_v<T, std::int8_t>, int, float>;

/// Computes sum += a * b for 16 rows of a and 8 columns of b, over 32 bytes of each.
template <class T>
__device__ void multiply_add(SumOf<T> (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  if constexpr (std::is_same_v<T, std::int8_t>) {
#if __CUDA_ARCH__ >= 800
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
        "%3};"
        : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
    const auto quarter = [](int& low, int& high, unsigned left, unsigned right) {
      asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
                   : "+r"(low), "+r"(high)
                   : "r"(left), "r"(right));
    };
    quarter(sum[0], sum[1], a[0], b0);
    quarter(sum[2], sum[3], a[1], b0);
    quarter(sum[0], sum[1], a[2], b1);
    quarter(sum[2], sum[3], a[3], b1);
#endif
  } else if constexpr (std::is_same_v<T, __half>) {
#if __CUDA_ARCH__ >= 800
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
        "%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
    const auto half = [&](unsigned left0, unsigned left1, unsigned right) {
      asm volatile(
          "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
          : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
          : "r"(left0), "r"(left1), "r"(right));
    };
    half(a[0], a[1], b0);
    half(a[2], a[3], b1);
#endif
  } else {
    static_assert(std::is_same_v<T, __nv_bfloat16>);
#if __CUDA_ARCH__ >= 800
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, "
        "%2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
    // Tensor cores of compute capability 7.5 do not support bf16. The host selects another kernel.
    asm volatile("trap;");
#endif
  }
}

/// Computes sums += a * b for every pair of several left and right operands. f32 requires compute capability 8.0.
template <class T, int Rows, int Columns>
__device__ void multiply_add_all(SumOf<T> (*sums)[Columns][4], const unsigned (&a)[Rows][4],
                                 const unsigned (&b)[Columns][2]) {
  if constexpr (std::is_same_v<T, float>) {
    // Three of the four products of the parts are added; the fourth is negligible. Tensor cores truncate sums instead
    // of rounding them, so the sum over many steps is computed outside of them.
    unsigned high[Columns][2];
    unsigned low[Columns][2];
#pragma unroll
    for (int j = 0; j < Columns; ++j) {
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        const TwoTf32 parts(__uint_as_float(b[j][k]));
        high[j][k] = parts.high;
        low[j][k] = parts.low;
      }
    }
    float products[Rows][Columns][4] = {};
#pragma unroll
    for (int product = 0; product < 3; ++product) {
#pragma unroll
      for (int i = 0; i < Rows; ++i) {
        unsigned left[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          const TwoTf32 parts(__uint_as_float(a[i][k]));
          left[k] = product == 0 ? parts.low : parts.high;
        }
#pragma unroll
        for (int j = 0; j < Columns; ++j) multiply_add_tf32(products[i][j], left, product == 1 ? low[j] : high[j]);
      }
    }
#pragma unroll
    for (int i = 0; i < Rows; ++i) {
#pragma unroll
      for (int j = 0; j < Columns; ++j) {
#pragma unroll
        for (int k = 0; k < 4; ++k) sums[i][j][k] += products[i][j][k];
      }
    }
  } else {
#pragma unroll
    for (int j = 0; j < Columns; ++j) {
#pragma unroll
      for (int i = 0; i < Rows; ++i) multiply_add<T>(sums[i][j], a[i], b[j][0], b[j][1]);
    }
  }
}

}  // namespace graft

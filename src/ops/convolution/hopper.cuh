// Wrappers of instructions of the Hopper architecture: transaction barriers, tensor copies (TMA) and warpgroup matrix
// products. Only for code compiled for sm_90a.
#pragma once

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace graft::ops::hopper {

[[nodiscard]] __device__ inline std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

/// Returns the index of the thread in its warp. The index is read again each time, so that no address computed from it
/// occupies a register from one tile to the next, because the products need all registers.
[[nodiscard]] __device__ inline int lane() {
  int lane;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}

// Barriers in shared memory, by address.

__device__ inline void barrier_init(std::uint32_t barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

/// Orders the initialization of barriers before tensor copies that use them.
__device__ inline void barrier_init_fence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

/// Arrives at the barrier and announces the number of bytes that copies will write before its phase ends.
__device__ inline void barrier_expect(std::uint32_t barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

__device__ inline void barrier_arrive(std::uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/// Waits until the phase of the given parity has ended.
__device__ inline void barrier_wait(std::uint32_t barrier, unsigned parity) {
  asm volatile(
      "{\n.reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

/// Copies 16 bytes from global to shared memory if `exists` is true, and writes zeros to shared memory otherwise. The
/// copy uses the L1 cache, because the windows of neighboring pixels overlap.
__device__ inline void copy_part(std::uint32_t to, const void* from, bool exists) {
  const int bytes = exists ? 16 : 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

/// Arrives at the barrier as soon as all earlier 16-byte copies of this thread are complete.
__device__ inline void barrier_arrive_copied(std::uint32_t barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}

/// Orders the writes to shared memory for which this thread has waited at a barrier before the warpgroup products that
/// read the written data.
__device__ inline void product_operands_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

[[nodiscard]] __device__ inline unsigned cluster_rank() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

/// Waits for all warps of the cluster that have not exited, and orders their accesses to shared memory.
__device__ inline void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/// Reduces the number of registers per thread to `Registers`; take_registers() increases it. All warps of a warpgroup
/// call these functions together.
template <int Registers>
__device__ inline void release_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}
template <int Registers>
__device__ inline void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

[[nodiscard]] __device__ inline float2 load_remote(std::uint32_t address, unsigned rank) {
  float2 v;
  asm volatile(
      "{\n.reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %2, %3;\n"
      "ld.shared::cluster.v2.f32 {%0, %1}, [remote];\n}"
      : "=f"(v.x), "=f"(v.y)
      : "r"(address), "r"(rank)
      : "memory");
  return v;
}

// Tensor copies from global to shared memory; one thread issues them.

__device__ inline void prefetch(const CUtensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

/// Copies pixels of a tensor of rank 4 (channels, w, h, n), which `map` describes, from (w, h, n) on, as the tap (s, r)
/// of the window reads them, to the address `to` in shared memory. The copy is asynchronous and arrives at `barrier`.
__device__ inline void copy_pixels(const CUtensorMap& map, std::uint32_t to, std::uint32_t barrier, int c, int w, int h,
                                   int n, int s, int r) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8};" ::"r"(to),
      "l"(&map), "r"(barrier), "r"(c), "r"(w), "r"(h), "r"(n), "h"(static_cast<std::uint16_t>(s)),
      "h"(static_cast<std::uint16_t>(r))
      : "memory");
}

/// Copies pixels as the function above, of a tensor of rank 5 (channels, w, h, n, plane) in which each plane contains
/// some of the channels of all images.
__device__ inline void copy_pixels(const CUtensorMap& map, std::uint32_t to, std::uint32_t barrier, int c, int w, int h,
                                   int n, int plane, int s, int r) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3, %4, %5, %6, %7}], [%2], {%8, %9, %10};" ::"r"(to),
      "l"(&map), "r"(barrier), "r"(c), "r"(w), "r"(h), "r"(n), "r"(plane), "h"(static_cast<std::uint16_t>(s)),
      "h"(static_cast<std::uint16_t>(r)), "h"(static_cast<std::uint16_t>(0))
      : "memory");
}

/// Copies the box that begins at the indices x0 to x4 of a tensor of rank 5, which `map` describes, to the address `to`
/// in shared memory. The copy is asynchronous and arrives at `barrier`.
__device__ inline void copy_box(const CUtensorMap& map, std::uint32_t to, std::uint32_t barrier, int x0, int x1, int x2,
                                int x3, int x4) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3, %4, %5, %6, %7}], [%2];" ::"r"(to),
      "l"(&map), "r"(barrier), "r"(x0), "r"(x1), "r"(x2), "r"(x3), "r"(x4)
      : "memory");
}

// Products of a warpgroup: 64 rows from shared memory times N columns from shared memory, 32 bytes deep.

__device__ inline void product_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void product_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int Pending>
__device__ inline void product_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}

#define GRAFT_LIST_8(f, d, i) \
  f(d, i), f(d, i + 1), f(d, i + 2), f(d, i + 3), f(d, i + 4), f(d, i + 5), f(d, i + 6), f(d, i + 7)
#define GRAFT_LIST_32(f, d, i) \
  GRAFT_LIST_8(f, d, i), GRAFT_LIST_8(f, d, i + 8), GRAFT_LIST_8(f, d, i + 16), GRAFT_LIST_8(f, d, i + 24)
#define GRAFT_LIST_48(f, d, i) GRAFT_LIST_32(f, d, i), GRAFT_LIST_8(f, d, i + 32), GRAFT_LIST_8(f, d, i + 40)
#define GRAFT_LIST_64(f, d, i) GRAFT_LIST_32(f, d, i), GRAFT_LIST_32(f, d, i + 32)
#define GRAFT_LIST_128(f, d, i) GRAFT_LIST_64(f, d, i), GRAFT_LIST_64(f, d, i + 64)
#define GRAFT_FLOAT(d, i) "+f"(d[i])
#define GRAFT_INT(d, i) "+r"(d[i])
#define GRAFT_NAMES_32                                                                                        \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, " \
  "%23, %24, %25, %26, %27, %28, %29, %30, %31"
#define GRAFT_NAMES_48 \
  GRAFT_NAMES_32       \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define GRAFT_NAMES_64 \
  GRAFT_NAMES_48       \
  ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define GRAFT_NAMES_128                                                                                          \
  GRAFT_NAMES_64                                                                                                 \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, "                 \
  "%82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, " \
  "%103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, " \
  "%121, %122, %123, %124, %125, %126, %127"

// a, b, keep: the indices of the asm operands that follow the results.
#define GRAFT_PRODUCT(element, result, columns, count, a, b, keep, type, tail, operand)                                \
  __device__ inline void product(element /*tag*/, result(&d)[count], std::uint64_t rows, std::uint64_t cols,           \
                                 int accumulate) {                                                                     \
    asm volatile("{\n.reg .pred keep;\nsetp.ne.b32 keep, %" #keep                                                      \
                 ", 0;\nwgmma.mma_async.sync.aligned.m64n" #columns type " {" GRAFT_NAMES_##count "}, %" #a ", %" #b   \
                                                                                                  ", keep" tail ";\n}" \
                 : GRAFT_LIST_##count(operand, d, 0)                                                                   \
                 : "l"(rows), "l"(cols), "r"(accumulate));                                                             \
  }
#define GRAFT_PRODUCTS(element, result, type, tail, operand)               \
  GRAFT_PRODUCT(element, result, 64, 32, 32, 33, 34, type, tail, operand)  \
  GRAFT_PRODUCT(element, result, 96, 48, 48, 49, 50, type, tail, operand)  \
  GRAFT_PRODUCT(element, result, 128, 64, 64, 65, 66, type, tail, operand) \
  GRAFT_PRODUCT(element, result, 256, 128, 128, 129, 130, type, tail, operand)

/// product(tag, d, rows, cols, accumulate) computes d = rows * cols, plus d if `accumulate`. The tag selects the
/// element type; `rows` and `cols` are descriptors of matrices in shared memory.
GRAFT_PRODUCTS(__half, float, "k16.f32.f16.f16", ", 1, 1, 0, 0", GRAFT_FLOAT)
GRAFT_PRODUCTS(__nv_bfloat16, float, "k16.f32.bf16.bf16", ", 1, 1, 0, 0", GRAFT_FLOAT)
GRAFT_PRODUCTS(std::int8_t, int, "k32.s32.s8.s8", "", GRAFT_INT)

#undef GRAFT_PRODUCTS
#undef GRAFT_PRODUCT
#undef GRAFT_NAMES_128
#undef GRAFT_NAMES_64
#undef GRAFT_NAMES_48
#undef GRAFT_NAMES_32
#undef GRAFT_INT
#undef GRAFT_FLOAT
#undef GRAFT_LIST_128
#undef GRAFT_LIST_64
#undef GRAFT_LIST_48
#undef GRAFT_LIST_32
#undef GRAFT_LIST_8

}  // namespace graft::ops::hopper

// Blocks that process the same vectors and exchange sums through each other's shared memory, from compute capability
// 9.0 on.
#pragma once

namespace graft {

/// The largest number of blocks in a cluster that every GPU with clusters can start.
inline constexpr int max_cluster = 8;

/// The cluster to which this block belongs. It is this block alone if the launch requested no cluster or the GPU does
/// not support clusters. BlockCluster<false> is for launches that never request a cluster.
template <bool Enabled>
class BlockCluster {
 public:
  [[nodiscard]] __device__ int size() const { return 1; }
  [[nodiscard]] __device__ int rank() const { return 0; }
  [[nodiscard]] __device__ unsigned index() const { return blockIdx.x; }
  __device__ void begin_sending() const {}
  __device__ void send(float* /*slots*/, int /*count*/, int /*index*/, float /*value*/) {}
  __device__ void receive() {}
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
// These functions replace cooperative_groups::cluster_group, whose header takes nvcc longer than most kernels.

/// Returns the address, in the shared memory of block `rank` of the cluster, that corresponds to `address` in the
/// shared memory of this block.
template <class T>
[[nodiscard]] __device__ T* in_block(T* address, int rank) {
  T* result;
  asm("mapa.u64 %0, %1, %2;" : "=l"(result) : "l"(address), "r"(rank));
  return result;
}
/// Waits for all threads of a cluster. Their earlier writes are then visible to all of them.
__device__ inline void sync_cluster() { asm volatile("barrier.cluster.arrive;\n\tbarrier.cluster.wait;" ::: "memory"); }
[[nodiscard]] __device__ inline int cluster_size() {
  int size;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  return size;
}
[[nodiscard]] __device__ inline int rank_in_cluster() {
  int rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

/// Whether kernels with clusters are compiled for this GPU. If not, they are never launched, and their code is omitted.
inline constexpr bool compiles_clusters = true;

template <>
class BlockCluster<true> {
 public:
  __device__ BlockCluster() {
    // No block may write to the memory of another block before the other block has started.
    if (size_ > 1) asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
  }
  [[nodiscard]] __device__ int size() const { return size_; }
  [[nodiscard]] __device__ int rank() const { return rank_; }
  /// Returns the index of the cluster in its grid.
  [[nodiscard]] __device__ unsigned index() const { return blockIdx.x / static_cast<unsigned>(size_); }

  /// Exchanges values between the blocks. All threads of all blocks call begin_sending() and receive(), once each.
  /// Between the two calls, any thread may send number `index` of this block, `value`, to slots[rank * count + index]
  /// in the shared memory of every block. After receive(), the slots are full.
  __device__ void begin_sending() const { asm volatile("barrier.cluster.wait.aligned;" ::: "memory"); }
  __device__ void send(float* slots, int count, int index, float value) {
    for (int other = 0; other < size_; ++other) in_block(slots, other)[rank_ * count + index] = value;
  }
  __device__ void receive() { sync_cluster(); }

 private:
  int size_ = cluster_size();
  int rank_ = rank_in_cluster();
};
#else
inline constexpr bool compiles_clusters = false;
#endif

/// Waits for all threads of this block or, if `blocks` is greater than 1, for all threads of the cluster of `blocks`
/// blocks.
__device__ inline void synchronize_blocks([[maybe_unused]] int blocks) {
#if __CUDA_ARCH__ >= 900
  if (blocks > 1) {
    sync_cluster();
    return;
  }
#endif
  __syncthreads();
}

/// Reads sums from the shared memory of one block, or adds the sums of the `parts` blocks of a cluster, in the order of
/// the blocks. `own` is the address of the sums in this block.
template <class Sum>
class ClusterSums {
 public:
  __device__ ClusterSums(Sum* own, int parts) : own_(own), parts_(parts) {}

  /// Sets `sums` to Count consecutive sums, from index `at` on. Count is 1 or a multiple of 4; in the latter case the
  /// address of sum `at` must be a multiple of 16 bytes.
  template <int Count>
  __device__ void load(int at, Sum (&sums)[Count]) const {
    if (parts_ == 1) {
      copy<Count>(own_ + at, sums);
      return;
    }
#if __CUDA_ARCH__ >= 900
#pragma unroll
    for (int i = 0; i < Count; ++i) sums[i] = 0;
    for (int part = 0; part < parts_; ++part) {
      Sum other[Count];
      copy<Count>(in_block(own_, part) + at, other);
#pragma unroll
      for (int i = 0; i < Count; ++i) sums[i] += other[i];
    }
#endif
  }

 private:
  struct alignas(16) Four {
    Sum at[4];
  };
  static_assert(sizeof(Four) == 16);

  template <int Count>
  __device__ static void copy(const Sum* from, Sum (&to)[Count]) {
    if constexpr (Count == 1) {
      to[0] = *from;
    } else {
#pragma unroll
      for (int i = 0; i < Count / 4; ++i) {
        const Four four = reinterpret_cast<const Four*>(from)[i];
#pragma unroll
        for (int k = 0; k < 4; ++k) to[4 * i + k] = four.at[k];
      }
    }
  }

  Sum* own_;
  int parts_;
};

}  // namespace graft

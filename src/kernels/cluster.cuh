// Blocks that work on the same vectors and exchange sums through each other's shared memory (compute capability 9.0
// on).
#pragma once

#include <cooperative_groups.h>

namespace graft {

/// The largest cluster that every GPU with clusters can start.
inline constexpr int max_cluster = 8;

/// The blocks of this block's cluster: itself alone where the launch asked for none, or the GPU has none. Not Enabled:
/// for launches that never ask for one.
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
template <>
class BlockCluster<true> {
 public:
  __device__ BlockCluster() {
    // No block may write to another one's memory before that has started.
    if (size_ > 1) asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
  }
  [[nodiscard]] __device__ int size() const { return size_; }
  [[nodiscard]] __device__ int rank() const { return rank_; }
  /// Of the cluster in its grid.
  [[nodiscard]] __device__ unsigned index() const { return blockIdx.x / static_cast<unsigned>(size_); }

  /// All threads of all blocks call begin_sending and receive, once each; in between, any thread may send this block's
  /// `value` number `index` to every block, to slots[rank * count + index] in shared memory. After receive, slots are
  /// full.
  __device__ void begin_sending() const { asm volatile("barrier.cluster.wait.aligned;" ::: "memory"); }
  __device__ void send(float* slots, int count, int index, float value) {
    for (int other = 0; other < size_; ++other) {
      group_.map_shared_rank(slots, static_cast<unsigned>(other))[rank_ * count + index] = value;
    }
  }
  __device__ void receive() { group_.sync(); }

 private:
  cooperative_groups::cluster_group group_ = cooperative_groups::this_cluster();
  int size_ = static_cast<int>(group_.num_blocks());
  int rank_ = static_cast<int>(group_.block_rank());
};
#endif

}  // namespace graft

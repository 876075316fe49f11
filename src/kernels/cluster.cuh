// Blocks that work on the same vectors and exchange sums through each other's shared memory (compute capability 9.0
// on).
#pragma once

#include <cooperative_groups.h>

namespace graft {

/// The largest cluster that every GPU with clusters can start.
inline constexpr int max_cluster = 8;

/// The blocks of this block's cluster: itself alone where the launch asked for none, or the GPU has none.
class BlockCluster {
 public:
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  __device__ BlockCluster()
      : size_(static_cast<int>(group_.num_blocks())), rank_(static_cast<int>(group_.block_rank())) {
    // No block may write to another one's memory before that has started.
    if (size_ > 1) asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
  }
  [[nodiscard]] __device__ int size() const { return size_; }
  [[nodiscard]] __device__ int rank() const { return rank_; }

  /// Sends this block's `value` number `index` to every block: to slots[rank * count + index], in shared memory. Slots
  /// can be read after `receive`. All threads of all blocks call `begin_sending` and `receive`, once.
  __device__ void begin_sending() const { asm volatile("barrier.cluster.wait.aligned;" ::: "memory"); }
  __device__ void send(float* slots, int count, int index, float value) {
    for (int other = 0; other < size_; ++other) {
      group_.map_shared_rank(slots, static_cast<unsigned>(other))[rank_ * count + index] = value;
    }
  }
  __device__ void receive() { group_.sync(); }

 private:
  cooperative_groups::cluster_group group_ = cooperative_groups::this_cluster();
  int size_;
  int rank_;
#else
  [[nodiscard]] __device__ int size() const { return 1; }
  [[nodiscard]] __device__ int rank() const { return 0; }
  __device__ void begin_sending() const {}
  __device__ void send(float* /*slots*/, int /*count*/, int /*index*/, float /*value*/) {}
  __device__ void receive() {}
#endif
};

}  // namespace graft

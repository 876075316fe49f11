// Lets a kernel begin while the previous kernel of the stream still runs (Grid::overlaps). Until the previous kernel
// has ended, the new kernel may only load memory that the previous one does not write.
#pragma once

namespace graft {

/// Allows the next kernel to begin once all blocks of this kernel have called this function or ended.
__device__ inline void let_next_kernel_begin() {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

/// Waits until the previous kernel has ended and its writes are visible. In a kernel that overlaps, all threads call
/// this function before they access memory that the previous kernel writes, and before they write any memory.
__device__ inline void wait_for_kernel_ahead() {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

}  // namespace graft

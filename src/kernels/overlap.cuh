// Kernels that begin while the previous kernel of the stream still runs (Grid::overlaps). Meanwhile they load memory
// that the previous kernel does not write.
#pragma once

namespace graft {

/// Allows the next kernel to begin as soon as all blocks of this kernel have called this function or ended.
__device__ inline void let_next_kernel_begin() {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

/// Waits until the previous kernel has ended and its writes are visible. All threads of a kernel that overlaps call
/// this before they access memory that the previous kernel writes, and before they write any memory.
__device__ inline void wait_for_kernel_ahead() {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

}  // namespace graft

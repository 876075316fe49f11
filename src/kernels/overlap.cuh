// Kernels that begin while the one ahead of them in the stream still runs (Grid::overlaps): loads of what that one does
// not write take place meanwhile.
#pragma once

namespace graft {

/// From when all blocks of this kernel have called this or ended, the next kernel may begin.
__device__ inline void let_next_kernel_begin() {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

/// Until the kernel ahead has ended and what it wrote can be seen. All threads of a kernel that overlaps call this
/// before they access memory that the kernel ahead writes, or write any.
__device__ inline void wait_for_kernel_ahead() {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

}  // namespace graft

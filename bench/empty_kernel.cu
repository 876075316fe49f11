// A kernel that does nothing: what a launch costs.
#include "kernels/launch.cuh"

namespace {
__global__ void empty_kernel() {}
}  // namespace

extern "C" __attribute__((visibility("default"))) int graft_bench_empty(void* stream) {
  const graft::CudaContext context{static_cast<CUstream_st*>(stream), ""};
  return graft::launch("empty kernel", empty_kernel, {1, 32}, context).ok() ? 0 : 1;
}

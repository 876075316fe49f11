// Runs the GPU tests; without a GPU, prints that and exits with 77, which ctest reports as skipped.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "graft/operator/registry.hpp"

int main(int argc, char** argv) {
  graft::register_cuda_kernels();
  ::testing::InitGoogleTest(&argc, argv);
  constexpr int skipped = 77;
  int devices = 0;
  const cudaError_t error = GTEST_FLAG_GET(list_tests) ? cudaSuccess : cudaGetDeviceCount(&devices);
  if (!GTEST_FLAG_GET(list_tests) && (error != cudaSuccess || devices == 0)) {
    std::printf("skipped: no GPU here (%s)\n", error == cudaSuccess ? "no device" : cudaGetErrorName(error));
    return skipped;
  }
  return RUN_ALL_TESTS();
}

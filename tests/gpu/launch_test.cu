// Tests that launches report their errors, and leave no pending error.
#include <gtest/gtest.h>

#include "kernels/launch.cuh"

namespace graft {
namespace {

__global__ void nothing(int /*unused*/) {}

TEST(Launch, ReportsTheErrorByName) {
  constexpr int too_many_threads = 4096;
  const Status status = launch("nothing", nothing, {1, too_many_threads}, {}, 0);
  EXPECT_EQ(status.code(), StatusCode::cuda_error);
  EXPECT_NE(status.message().find("nothing: cudaErrorInvalid"), std::string::npos) << status.message();
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST(Launch, RefusesMoreBlocksThanAGridHas) {
  const Status status = launch("nothing", nothing, {std::int64_t{1} << 31, 1}, {}, 0);
  EXPECT_EQ(status.code(), StatusCode::unsupported);
}

TEST(Launch, AnEmptyGridIsNothingToDo) { EXPECT_TRUE(launch("nothing", nothing, {0, 1}, {}, 0).ok()); }

TEST(Device, IsAskedOnce) {
  DeviceTraits first;
  DeviceTraits second;
  ASSERT_TRUE(current_device(first).ok());
  ASSERT_TRUE(current_device(second).ok());
  EXPECT_GT(first.multiprocessors, 0);
  EXPECT_EQ(first.multiprocessors, second.multiprocessors);
  EXPECT_EQ(first.threads_per_multiprocessor, second.threads_per_multiprocessor);
}

}  // namespace
}  // namespace graft

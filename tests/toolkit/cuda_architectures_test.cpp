// Tests on which GPUs compiled code runs. The expectations are those of NVIDIA's CUDA programming guide, "Binary
// Compatibility" and "PTX Compatibility".
#include "toolkit/cuda_architectures.hpp"

#include <gtest/gtest.h>

namespace graft::toolkit {
namespace {

TEST(CudaArchitectures, machine_code_runs_on_later_gpus_of_the_generation) {
  EXPECT_TRUE(runs_on({"80-real"}, "sm80"));
  EXPECT_TRUE(runs_on({"80-real"}, "sm89"));
  EXPECT_TRUE(runs_on({"120-real"}, "sm121"));
  EXPECT_FALSE(runs_on({"89-real"}, "sm80"));
  EXPECT_FALSE(runs_on({"80-real"}, "sm90"));
}

TEST(CudaArchitectures, jetson_modules_run_only_their_own_machine_code) {
  EXPECT_TRUE(runs_on({"87-real"}, "sm87"));
  EXPECT_TRUE(runs_on({"110-real"}, "sm110"));
  EXPECT_FALSE(runs_on({"80-real", "86-real"}, "sm87"));
  EXPECT_FALSE(runs_on({"87-real"}, "sm89"));
}

TEST(CudaArchitectures, ptx_runs_on_every_later_gpu) {
  EXPECT_TRUE(runs_on({"90-virtual"}, "sm110"));
  EXPECT_TRUE(runs_on({"80"}, "sm87"));
  EXPECT_FALSE(runs_on({"90-virtual"}, "sm87"));
}

}  // namespace
}  // namespace graft::toolkit

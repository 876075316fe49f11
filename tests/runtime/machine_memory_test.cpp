// Tests the limits of control groups, with the files that the kernel shows in a container and outside of one.
#include "runtime/machine_memory.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <string>

#include "onnx/temporary_folder.hpp"

namespace graft::runtime {
namespace {

constexpr double mebibyte = 1 << 20;

double memory_of_machine() {
  return static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

/// Returns the memory with these files, by their paths below the root.
double memory_with(const std::map<std::string, std::string>& files) {
  const onnx::TemporaryFolder folder;
  for (const auto& [path, text] : files) {
    const std::filesystem::path file = folder.path() / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << '\n';
  }
  return usable_memory(folder.path());
}

TEST(UsableMemory, IsThatOfTheMachineWithoutALimit) {
  EXPECT_EQ(memory_with({}), memory_of_machine());
  EXPECT_EQ(memory_with({{"proc/self/cgroup", "0::/"}, {"sys/fs/cgroup/memory.max", "max"}}), memory_of_machine());
  EXPECT_EQ(memory_with({{"proc/self/cgroup", "4:memory:/"},
                         {"sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712"}}),
            memory_of_machine());
}

TEST(UsableMemory, IsThatOfAContainer) {
  EXPECT_EQ(memory_with({{"proc/self/cgroup", "0::/"}, {"sys/fs/cgroup/memory.max", "3145728"}}), 3 * mebibyte);
  EXPECT_EQ(memory_with({{"proc/self/cgroup", "12:cpu,cpuacct:/docker/1\n11:memory:/docker/1\n0::/docker/1"},
                         {"sys/fs/cgroup/memory/memory.limit_in_bytes", "5242880"}}),
            5 * mebibyte)
      << "the container mounts its own group, whose path is that outside of it";
}

TEST(UsableMemory, IsThatOfTheLowestGroupAround) {
  EXPECT_EQ(memory_with({{"proc/self/cgroup", "0::/user.slice/job.scope"},
                         {"sys/fs/cgroup/user.slice/memory.max", "2097152"},
                         {"sys/fs/cgroup/user.slice/job.scope/memory.max", "max"}}),
            2 * mebibyte);
  EXPECT_EQ(memory_with({{"proc/self/cgroup", "0::/user.slice/job.scope"},
                         {"sys/fs/cgroup/user.slice/memory.max", "4194304"},
                         {"sys/fs/cgroup/user.slice/job.scope/memory.max", "1048576"}}),
            mebibyte);
}

}  // namespace
}  // namespace graft::runtime

// Tests a program whose memory-mapped file is truncated.
#include "cli/interrupts.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "onnx/mapped_file.hpp"

namespace graft::cli {
namespace {

/// A file of zeros, which the destructor removes.
class ZeroFile {
 public:
  explicit ZeroFile(std::uintmax_t size) {
    std::ofstream(path_).close();
    std::filesystem::resize_file(path_, size);
  }
  ~ZeroFile() { std::filesystem::remove(path_); }
  ZeroFile(const ZeroFile&) = delete;
  ZeroFile& operator=(const ZeroFile&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_ = testing::TempDir() + "zeros-" + std::to_string(::getpid());
};

int sum_after_cut(const std::string& path) {
  const auto file = onnx::MappedFile::open(path);
  std::filesystem::resize_file(path, 0);
  int sum = 0;
  for (const char c : file->view()) sum += c;
  return sum;
}

TEST(Interrupts, a_large_file_that_is_cut_short_is_an_error) {
  const ZeroFile file(std::uintmax_t{100} << 20U);
  EXPECT_EXIT(
      {
        install_interrupt_handlers();
        std::_Exit(sum_after_cut(file.path()));
      },
      testing::ExitedWithCode(2), "error: .*zeros-.*: the file was truncated");
}

TEST(Interrupts, a_small_file_is_in_memory_when_it_is_cut_short) {
  const ZeroFile file(std::uintmax_t{1} << 20U);
  EXPECT_EQ(sum_after_cut(file.path()), 0);
}

TEST(Interrupts, a_bus_error_of_another_kind_ends_the_program) {
  EXPECT_EXIT(
      {
        install_interrupt_handlers();
        (void)std::raise(SIGBUS);
        (void)std::raise(SIGBUS);
      },
      testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace graft::cli

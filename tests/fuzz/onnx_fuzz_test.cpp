// The fuzz target on stored models, cut short and with flipped bits: always the same inputs, in a few seconds.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

void run(const std::string& bytes) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

std::vector<std::string> models() {
  std::vector<std::filesystem::path> paths;
  for (const char* folder : {"models", "near_misses", "exports"}) {
    const auto path = std::filesystem::path(GRAFT_GOLDEN_DIR) / folder;
    if (!std::filesystem::exists(path)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      if (entry.path().extension() == ".onnx" && entry.file_size() < 4096) paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> contents;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    contents.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return contents;
}

long peak_megabytes() {
  struct ::rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

TEST(OnnxFuzz, Truncated) {
  const auto all = models();
  ASSERT_GE(all.size(), 10U);
  for (const std::string& bytes : all) {
    run(bytes);
    const std::size_t step = std::max<std::size_t>(1, bytes.size() / 200);
    for (std::size_t size = 0; size < bytes.size(); size += step) run(bytes.substr(0, size));
  }
}

TEST(OnnxFuzz, FlippedBitsAndOverwrittenBytes) {
  std::mt19937 random(20260101);
  for (const std::string& bytes : models()) {
    for (int round = 0; round < 150; ++round) {
      std::string changed = bytes;
      for (int i = 0; i <= round % 4; ++i) {
        char& target = changed[random() % changed.size()];
        target = round % 2 == 0 ? static_cast<char>(target ^ (1 << (random() % 8))) : static_cast<char>(random());
      }
      run(changed);
    }
  }
  EXPECT_LT(peak_megabytes(), 1024);  // sizes that a file merely claims must not be allocated
}

TEST(OnnxFuzz, RandomBytes) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 300, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    run(bytes);
  }
}

}  // namespace

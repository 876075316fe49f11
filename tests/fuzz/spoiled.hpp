// Damages copies of good files, always in the same way: truncated, with flipped bits, with changed fields, and random
// bytes; and checks the bounds that reading any file has to keep.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/target.hpp"
#include "tests/support/folders.hpp"

namespace graft::fuzz {

/// Reads and converts one file. Memory beyond the limit and undefined behavior end the program. Only the fuzzer limits
/// the time (tools/fuzz.py); here ctest ends a hanging test.
inline void expect_bounded(const std::string& bytes) { run(bytes); }

/// Returns every `step`-th file, so that a run stays short; the fuzzer itself reads all of them.
inline std::vector<std::string> some_of(const std::vector<std::string>& files, std::size_t step) {
  std::vector<std::string> result;
  for (std::size_t i = 0; i < files.size(); i += step) result.push_back(files[i]);
  return result;
}

inline void cut_short(const std::vector<std::string>& files, std::size_t cuts) {
  for (const std::string& bytes : files) {
    expect_bounded(bytes);
    const std::size_t step = std::max<std::size_t>(1, bytes.size() / cuts);
    for (std::size_t size = 0; size < bytes.size(); size += step) expect_bounded(bytes.substr(0, size));
  }
}

inline void flip_and_overwrite(const std::vector<std::string>& files, int rounds) {
  std::mt19937 random(20260101);
  for (const std::string& bytes : files) {
    for (int round = 0; round < rounds; ++round) {
      std::string changed = bytes;
      for (int i = 0; i <= round % 4; ++i) {
        char& target = changed[random() % changed.size()];
        target = round % 2 == 0 ? static_cast<char>(target ^ (1 << (random() % 8))) : static_cast<char>(random());
      }
      expect_bounded(changed);
    }
  }
}

inline void change_fields(const std::vector<std::string>& files, int rounds) {
  std::uint64_t seed = 0;
  for (const std::string& bytes : files) {
    std::string changed = bytes;
    for (int round = 0; round < rounds; ++round) {
      // Each mutation continues from the previous one; every fourth one starts from the file again.
      std::string next = mutate(round % 4 == 0 ? bytes : changed, ++seed);
      if (next.empty()) continue;
      changed = std::move(next);
      expect_bounded(changed);
    }
  }
}

inline void random_bytes() {
  std::mt19937 random(7);
  for (int round = 0; round < 500; ++round) {
    std::string bytes(random() % 300, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    expect_bounded(bytes);
  }
}

/// Returns the corpus of the fuzzer: one file for each new path through Graft, and all files that once showed a defect.
inline std::vector<std::string> corpus(const std::string& format) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry :
       std::filesystem::directory_iterator(golden_folder().parent_path() / "fuzz/corpus" / format)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> contents;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    contents.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return contents;
}

}  // namespace graft::fuzz

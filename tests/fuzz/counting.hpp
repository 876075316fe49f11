// Counts memory while a file is read.
#pragma once

#include <cstddef>

namespace graft::fuzz {

/// Counts memory during its lifetime, in builds with the address sanitizer. Ends the program where more than `most`
/// bytes are allocated in all, or more than `most_at_once` in one allocation.
class Counting {
 public:
  Counting(std::size_t most, std::size_t most_at_once);
  Counting(const Counting&) = delete;
  Counting& operator=(const Counting&) = delete;
  ~Counting();
};

/// Returns the memory that a file of this size may need: 4 times its size, but at least a floor. Nodes and values of a
/// graph are larger in memory than in a file, which the floor allows for; the factor bounds data, of which large files
/// mostly consist.
[[nodiscard]] std::size_t memory_limit(std::size_t file_size);
/// Returns the size that one allocation may have: 4 times the file size, but at least a floor, which bounds the result
/// of constant folding.
[[nodiscard]] std::size_t single_limit(std::size_t file_size);

}  // namespace graft::fuzz

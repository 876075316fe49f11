// Memory, counted while a file is read.
#pragma once

#include <cstddef>

namespace graft::fuzz {

/// While one lives, memory is counted, in builds with the address sanitizer. What takes more in all, or at once, ends
/// the program.
class Counting {
 public:
  Counting(std::size_t most, std::size_t most_at_once);
  Counting(const Counting&) = delete;
  Counting& operator=(const Counting&) = delete;
  ~Counting();
};

/// What a file of that size may take: 4 times its size, and below that a floor. Nodes and values of a graph are larger
/// than their few bytes in a file; that is bounded by this floor, and data, which large files consist of, by the
/// factor.
[[nodiscard]] std::size_t memory_limit(std::size_t file_size);
/// The same of one allocation. Its floor is what folding may make of nothing.
[[nodiscard]] std::size_t single_limit(std::size_t file_size);

}  // namespace graft::fuzz

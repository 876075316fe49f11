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

}  // namespace graft::fuzz

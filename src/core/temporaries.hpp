// Counts the temporary files and folders of this process.
#pragma once

#include <atomic>

namespace graft {

/// Counts a temporary file or folder while an object of this class exists. Create the object before the file, and
/// destroy it after the file was removed or renamed.
class CountedTemporary {
 public:
  CountedTemporary() { ++count; }
  ~CountedTemporary() { --count; }
  CountedTemporary(const CountedTemporary&) = delete;
  CountedTemporary& operator=(const CountedTemporary&) = delete;

  /// Returns whether a temporary file or folder exists. May be called from a signal handler.
  [[nodiscard]] static bool any() { return count.load() != 0; }

 private:
  static inline std::atomic<int> count{0};
  static_assert(std::atomic<int>::is_always_lock_free);
};

}  // namespace graft

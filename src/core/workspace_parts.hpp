// A workspace that is divided into consecutive parts.
#pragma once

#include <cstdint>

namespace graft {

/// The base of a workspace plan. Its parts begin at multiples of 256 bytes, as TensorRT's allocations do.
struct WorkspaceParts {
  /// Appends a part of `size` bytes and returns its offset in the workspace.
  std::int64_t add(std::int64_t size) {
    constexpr std::int64_t alignment = 256;
    const std::int64_t at = bytes;
    bytes += (size + alignment - 1) / alignment * alignment;
    return at;
  }

  std::int64_t bytes = 0;
};

}  // namespace graft

// Parts of a workspace, one after another.
#pragma once

#include <cstdint>

namespace graft::ops {

/// What a plan of a workspace derives from: its parts begin at multiples of 256 bytes, as TensorRT's allocations do.
struct WorkspaceParts {
  /// Where a part of so many bytes begins.
  std::int64_t add(std::int64_t size) {
    constexpr std::int64_t alignment = 256;
    const std::int64_t at = bytes;
    bytes += (size + alignment - 1) / alignment * alignment;
    return at;
  }

  std::int64_t bytes = 0;
};

}  // namespace graft::ops

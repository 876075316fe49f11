// A workspace that is divided into consecutive parts.
#pragma once

#include <cstdint>

namespace graft {

/// The base class of the plans that divide a workspace, which is a kernel's scratch memory on the device, into buffers.
/// Each buffer begins at a multiple of 256 bytes, as TensorRT's allocations do.
struct WorkspaceParts {
  /// Adds a buffer of `size` bytes after the earlier ones, and returns its offset in bytes.
  std::int64_t add(std::int64_t size) {
    constexpr std::int64_t alignment = 256;
    const std::int64_t at = bytes;
    bytes += (size + alignment - 1) / alignment * alignment;
    return at;
  }

  std::int64_t bytes = 0;
};

}  // namespace graft

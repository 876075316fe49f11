// A folder of files that are needed for a while.
#pragma once

#include <filesystem>

#include "core/descriptor.hpp"

namespace graft::onnx {

/// A folder in TMPDIR that is removed with the object. It is locked while it is used: folders that killed processes
/// left behind are removed when a new one is made.
class TemporaryFolder {
 public:
  TemporaryFolder();  ///< In TMPDIR. Throws Error where none can be made.
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  Descriptor lock_;
};

}  // namespace graft::onnx

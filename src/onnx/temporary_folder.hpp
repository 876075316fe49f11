// A folder for temporary files.
#pragma once

#include <filesystem>

#include "core/descriptor.hpp"
#include "core/temporaries.hpp"

namespace graft::onnx {

/// A folder in TMPDIR that is removed when the object is destroyed. It is locked while it is in use: creating a new one
/// removes the folders that killed processes left behind.
class TemporaryFolder {
 public:
  TemporaryFolder();  ///< Creates the folder. Throws Error if no folder can be created in TMPDIR.
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  CountedTemporary counted_;
  std::filesystem::path path_;
  Descriptor lock_;
};

}  // namespace graft::onnx

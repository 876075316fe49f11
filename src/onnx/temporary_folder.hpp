// A folder for temporary files.
#pragma once

#include <filesystem>

#include "core/descriptor.hpp"
#include "core/temporaries.hpp"

namespace graft::onnx {

/// A folder in TMPDIR that is removed with the object. It is locked while it is used: a new one removes the folders
/// that killed processes left behind.
class TemporaryFolder {
 public:
  TemporaryFolder();  ///< Throws Error if no folder can be created in TMPDIR.
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

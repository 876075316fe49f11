// A folder for files that are removed when the command ends.
#pragma once

#include <filesystem>

#include "core/descriptor.hpp"

namespace graft::engine {

/// A folder in TMPDIR, locked while it is used. Folders that killed processes left are removed when a new one is made.
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

}  // namespace graft::engine

// A folder for files that go when the command ends.
#pragma once

#include <filesystem>

namespace graft::engine {

class TemporaryFolder {
 public:
  TemporaryFolder();  ///< In TMPDIR. Throws Error where none can be made.
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace graft::engine

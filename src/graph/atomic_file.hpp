// Files that are written whole or not at all.
#pragma once

#include <filesystem>
#include <string_view>

namespace graft {

/// Written under a temporary name in the same folder; `commit` flushes it to disk and renames it. Without a commit
/// nothing stays. Throws Error naming the path and the system's reason (no space, no permission, no such folder).
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view bytes);
  void flush();  ///< Everything so far is on the disk; a full disk shows here at the latest.
  void commit();

 private:
  [[noreturn]] void fail(const char* what) const;

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
};

/// The whole file at once.
void write_file(const std::filesystem::path& path, std::string_view bytes);

}  // namespace graft

// Files that are written whole or not at all.
#pragma once

#include <filesystem>
#include <string_view>

namespace graft::onnx {

/// Where a file written to `path` ends up: the end of its chain of links. Throws Error if something else than a regular
/// file is there: renaming over a device such as /dev/null would replace the device.
[[nodiscard]] std::filesystem::path writable_target(const std::filesystem::path& path);

/// Written under a temporary name in the same folder; `commit` flushes it to disk and renames it. Without a commit
/// nothing stays. A link stays a link; what it points to is written. Throws Error naming the path and the reason (no
/// regular file, no space, no permission, no such folder).
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
  std::filesystem::path target_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
};

/// The whole file at once.
void write_file(const std::filesystem::path& path, std::string_view bytes);

}  // namespace graft::onnx

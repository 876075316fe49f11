// Files that are written whole or not at all.
#pragma once

#include <filesystem>
#include <string_view>

namespace graft::onnx {

/// Throws Error unless a file written to `path` may take its place: allowed are regular files, new names, and symbolic
/// links to either. A link is replaced by the written file and never followed: a link that came with somebody else's
/// files would lead the write to any file of the user's. Renaming over a device such as /dev/null would replace the
/// device, and /dev/stdout is a link.
void check_replaceable(const std::filesystem::path& path);

/// A file that is written under a temporary name in the same folder; `commit` flushes it to disk and renames it to
/// `path`. Without a commit nothing stays; the file of a killed process is removed when the same name is written again.
/// A symbolic link in its place is replaced and not followed. Throws Error naming the path and the reason (no regular
/// file, no space, no permission, no such folder).
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

}  // namespace graft::onnx

// Writes files completely or not at all.
#pragma once

#include <filesystem>
#include <string_view>

#include "core/temporaries.hpp"

namespace graft {

/// Throws Error unless a written file may replace what exists at `path`: a regular file, nothing, or a symbolic link to
/// either. A written file replaces the link, which is never followed: a link from somebody else could direct the write
/// to any file of the user. Renaming over a device such as /dev/null would replace the device, and /dev/stdout is a
/// link.
void check_replaceable(const std::filesystem::path& path);

/// A file that is written under a temporary name in the same folder; `commit` flushes it to disk and renames it to
/// `path`. Without a commit no file remains; the file of a killed process is removed when the same name is written
/// again. A symbolic link at `path` is replaced and not followed. Throws Error naming the path and the reason (not a
/// regular file, no space, no permission, no such folder).
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view bytes);
  void flush();  ///< Forces the written bytes to the disk. A full disk is reported here at the latest.
  void commit();

 private:
  [[noreturn]] void fail(const char* what) const;

  CountedTemporary counted_;
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
};

/// Writes a whole file at once.
void write_file(const std::filesystem::path& path, std::string_view bytes);

}  // namespace graft

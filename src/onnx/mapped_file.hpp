// Opens the files that Graft reads: only regular files, and only up to a size limit.
#pragma once

#include <cstddef>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

namespace graft::onnx {

/// The bytes of a regular file, valid until the last owner is destroyed. Up to 64 MiB are copied, larger files are
/// mapped. The file may be replaced by a rename meanwhile. If a mapped file is truncated meanwhile, reading it raises
/// SIGBUS; see path_at.
class MappedFile {
 public:
  static constexpr std::size_t any_size = std::numeric_limits<std::size_t>::max();

  /// Opens a file. Throws Error naming the path and the system's reason. Also throws, without waiting, if the path is
  /// not a regular file (but a pipe, a device or a socket), or if the file has more than `most` bytes.
  [[nodiscard]] static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path,
                                                              std::size_t most = any_size);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  [[nodiscard]] std::string_view view() const { return {address_, size_}; }

  /// Returns the path of the file that is mapped at an address, or null. May be called from a signal handler.
  [[nodiscard]] static const char* path_at(const void* address);

 private:
  MappedFile() = default;
  std::string path_;
  std::string copy_;
  const char* address_ = nullptr;
  std::size_t size_ = 0;
  bool is_mapped_ = false;
};

/// Returns at most `most` bytes from the beginning of a file; an empty string if it is not a regular file or cannot be
/// read.
[[nodiscard]] std::string beginning_of_file(const std::filesystem::path& path, std::size_t most);

}  // namespace graft::onnx

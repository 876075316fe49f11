// The one way in which Graft opens what it reads: regular files only, up to a size.
#pragma once

#include <cstddef>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

namespace graft::onnx {

/// A regular file's bytes, until the last owner goes: copied where there are up to 64 MiB of them, mapped beyond. The
/// file may be replaced by a rename meanwhile. Where a mapped one is cut short meanwhile, reading it
/// raises SIGBUS, see path_at.
class MappedFile {
 public:
  static constexpr std::size_t any_size = std::numeric_limits<std::size_t>::max();

  /// Throws Error naming the path and the system's reason, or what is no regular file (a pipe, a device, a socket: none
  /// of which is waited for), or more than `most` bytes.
  [[nodiscard]] static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path,
                                                              std::size_t most = any_size);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  [[nodiscard]] std::string_view view() const { return {address_, size_}; }

  /// The path of the mapped file at an address; null for none. A signal handler may call it.
  [[nodiscard]] static const char* path_at(const void* address);

 private:
  MappedFile() = default;
  std::string path_;
  std::string copy_;
  const char* address_ = nullptr;
  std::size_t size_ = 0;
  bool is_mapped_ = false;
};

/// The first bytes of a file; none where it is no regular file or cannot be read.
[[nodiscard]] std::string beginning_of_file(const std::filesystem::path& path, std::size_t most);

}  // namespace graft::onnx

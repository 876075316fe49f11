// A file mapped into memory for reading.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

namespace graft {

/// Unmapped when the last owner goes. The file may be replaced by a rename meanwhile, but must not be cut short.
class MappedFile {
 public:
  /// Throws Error naming the path and the system's reason.
  [[nodiscard]] static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  [[nodiscard]] std::string_view view() const { return {address_, size_}; }

 private:
  MappedFile() = default;
  const char* address_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace graft

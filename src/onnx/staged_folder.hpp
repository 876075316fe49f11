// Writes folders completely or not at all.
#pragma once

#include <filesystem>

#include "core/descriptor.hpp"
#include "core/temporaries.hpp"

namespace graft::onnx {

/// A new folder under a temporary name next to its target; `commit` renames it. If `commit` is not called, the folder
/// is removed; the folder of a killed process is removed when the same name is written again. Throws Error if the
/// target exists, even as a symbolic link, which is then not changed, or if the parent folder is missing or cannot be
/// written to.
class StagedFolder {
 public:
  explicit StagedFolder(std::filesystem::path target);
  ~StagedFolder();
  StagedFolder(const StagedFolder&) = delete;
  StagedFolder& operator=(const StagedFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return staged_; }

  void commit();

 private:
  [[noreturn]] void fail() const;
  [[noreturn]] void fail_taken() const;

  CountedTemporary counted_;
  std::filesystem::path target_;
  std::filesystem::path staged_;
  Descriptor lock_;
};

}  // namespace graft::onnx

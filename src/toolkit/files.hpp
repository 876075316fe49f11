// Functions on files that commands write and read.
#pragma once

#include <filesystem>

namespace graft::toolkit {

/// Throws Error where a file of this name cannot be written. Commands call it before long work.
void check_writable(const std::filesystem::path& file);

/// Returns whether a temporary file or folder of this process exists. A signal handler may call it.
[[nodiscard]] bool has_temporary_files();

/// Returns the path of the file that is mapped at an address, or null. A signal handler may call it.
[[nodiscard]] const char* mapped_file_at(const void* address);

}  // namespace graft::toolkit

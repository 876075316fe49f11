// Files that commands write.
#pragma once

#include <filesystem>

namespace graft::toolkit {

/// Throws Error where a file of that name could not be written; before long work.
void check_writable(const std::filesystem::path& file);

/// The path of the file that is mapped at an address; null for none. A signal handler may call it.
[[nodiscard]] const char* mapped_file_at(const void* address);

}  // namespace graft::toolkit

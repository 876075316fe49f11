// Functions for programs: a check of an output file before long work, and facts for signal handlers.
#pragma once

#include <filesystem>

#include "graft/toolkit/export.hpp"

namespace graft::toolkit {

/// Throws Error where a file of this name cannot be written. The file itself is not changed.
GRAFT_API void check_writable(const std::filesystem::path& file);

/// Returns whether a temporary file or folder of this process exists, which stays if the process ends now. A signal
/// handler may call it.
[[nodiscard]] GRAFT_API bool has_temporary_files();

/// Returns the path of the file that is mapped at an address, or null. A handler of SIGBUS may call it: the signal
/// means that the file was truncated while it was read, or that its disk failed.
[[nodiscard]] GRAFT_API const char* mapped_file_at(const void* address);

}  // namespace graft::toolkit

// Functions for programs: checks of files before long work, and facts for signal handlers.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "graft/toolkit/export.hpp"

namespace graft::toolkit {

/// Throws Error where a file of this name cannot be written. The file itself is not changed.
GRAFT_API void check_writable(const std::filesystem::path& file);

/// Throws EngineError for a plugin library that is not a regular file. `build` and `inspect` find such a library only
/// when TensorRT loads it; a program calls this function before it reads a large model.
GRAFT_API void check_plugin_libraries(const std::vector<std::string>& libraries);

/// Returns whether this process has a temporary file or folder that would remain if the process ended now. A signal
/// handler may call it.
[[nodiscard]] GRAFT_API bool has_temporary_files();

/// Returns the path of the file that is mapped at an address, or null. A handler of SIGBUS may call it: the signal
/// means that the file was truncated while it was read, or that its disk failed.
[[nodiscard]] GRAFT_API const char* mapped_file_at(const void* address);

}  // namespace graft::toolkit

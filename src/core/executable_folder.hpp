// Finds the folder that contains the running code; other files of Graft are located relative to it.
#pragma once

#include <filesystem>

namespace graft {

/// Returns the folder of the file that contains this code: the running program, or the shared library that it is linked
/// into.
[[nodiscard]] std::filesystem::path executable_folder();

/// Returns whether the path is a file that this process may execute.
[[nodiscard]] bool is_program(const std::filesystem::path& path);

}  // namespace graft

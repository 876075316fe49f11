// Finds the folder in which this code is installed; other files of Graft are found relative to it.
#pragma once

#include <filesystem>

namespace graft {

/// Returns the folder of the file that holds this code: the running program, or the shared library that it is part of.
[[nodiscard]] std::filesystem::path executable_folder();

/// Returns whether the path is a file that this process may execute.
[[nodiscard]] bool is_program(const std::filesystem::path& path);

}  // namespace graft

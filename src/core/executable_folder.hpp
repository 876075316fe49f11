// Finds the folder that contains the running code; other files of Graft are located relative to it.
#pragma once

#include <array>
#include <filesystem>

namespace graft {

/// The folders of libraries in an installation, relative to its prefix: "lib" is the folder in a build and in a wheel,
/// and Linux distributions use all of them.
inline constexpr std::array library_folders = {"lib", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu", "lib64"};

/// Returns the folder of the file that contains this code: the running program, or the shared library that it is linked
/// into.
[[nodiscard]] std::filesystem::path executable_folder();

/// Returns whether the path is a file that this process may execute.
[[nodiscard]] bool is_program(const std::filesystem::path& path);

}  // namespace graft

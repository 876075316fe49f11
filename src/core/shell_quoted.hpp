// Quotes text for a shell.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace graft {

/// Returns the text in single quotes. `quote` replaces a single quote inside the text: the default suits POSIX shells,
/// and fish needs \'.
[[nodiscard]] std::string shell_quoted(std::string_view text, std::string_view quote = R"('\'')");

/// Returns the text, in quotes if it contains characters that a shell would interpret.
[[nodiscard]] std::string shell_argument(const std::string& text);

/// Returns the path of a file for a printed command. A path that starts with a dash is prefixed with "./", because
/// programs would otherwise parse it as an option.
[[nodiscard]] std::string shell_path(const std::filesystem::path& path);

}  // namespace graft

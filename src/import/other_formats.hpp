// Explains files of formats that Graft does not read.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace graft {

/// Returns the kind of the file and how to convert it if Graft cannot read it; nothing if Graft may be able to read it.
[[nodiscard]] std::optional<std::string> explain_other_format(const std::filesystem::path& path);

}  // namespace graft

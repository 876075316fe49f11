// Files of other formats than Graft reads.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace graft {

/// What a file is that Graft does not read, and what to do; nothing where it may be one that it reads.
[[nodiscard]] std::optional<std::string> explain_other_format(const std::filesystem::path& path);

}  // namespace graft

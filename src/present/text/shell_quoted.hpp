// Text for a shell.
#pragma once

#include <string>
#include <string_view>

namespace graft::present {

/// Within single quotes. `quote` is how the shell writes one inside: that of POSIX, or \' in fish.
[[nodiscard]] std::string shell_quoted(std::string_view text, std::string_view quote = R"('\'')");

}  // namespace graft::present

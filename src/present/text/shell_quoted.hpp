// Text for a shell.
#pragma once

#include <string>
#include <string_view>

namespace graft::present {

/// Within single quotes. `quote` is how the shell writes one inside: that of POSIX, or \' in fish.
[[nodiscard]] std::string shell_quoted(std::string_view text, std::string_view quote = R"('\'')");

/// The same, and only where a shell would not take it as it is.
[[nodiscard]] std::string shell_argument(const std::string& text);

}  // namespace graft::present

// The names that settings of the toolkit have on this program's command line.
#pragma once

#include <string_view>

#include "graft/toolkit/setting.hpp"

namespace graft::cli {

/// Returns the option of a setting, "--input", or the words to type if the setting needs more than an option.
[[nodiscard]] std::string_view option_of(Setting setting);

}  // namespace graft::cli

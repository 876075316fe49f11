// The names that settings of the toolkit have on this program's command line.
#pragma once

#include <string_view>

#include "graft/toolkit/setting.hpp"

namespace graft::cli {

/// Returns the program's option for a setting, such as "--input", or the phrase that messages show if one option is not
/// enough.
[[nodiscard]] std::string_view option_of(Setting setting);

}  // namespace graft::cli

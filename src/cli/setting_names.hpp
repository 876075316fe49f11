// The names that settings of the toolkit have on this program's command line.
#pragma once

#include <string_view>

#include "graft/toolkit/setting.hpp"

namespace graft::cli {

/// "--input"; of settings that take more than an option the words that one types.
[[nodiscard]] std::string_view option_of(Setting setting);

}  // namespace graft::cli

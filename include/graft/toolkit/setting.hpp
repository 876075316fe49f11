// What messages call the options of the toolkit, for programs whose users know them by other names.
#pragma once

#include <string_view>

#include "graft/setting.hpp"
#include "graft/toolkit/export.hpp"

namespace graft::toolkit {

/// "ImportOptions::shapes": what messages call a setting where nothing else is said.
[[nodiscard]] GRAFT_API std::string_view field_name(Setting setting);

/// From now on errors, warnings and the advice in results call each setting as `names` does, and not by its field: a
/// program with a command line gives its options. Of the whole process; before any other call of the toolkit.
GRAFT_API void name_settings(SettingNames names);

}  // namespace graft::toolkit

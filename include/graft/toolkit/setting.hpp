// Names of the toolkit's options in messages, for programs whose users know the options by other names.
#pragma once

#include <string_view>

#include "graft/setting.hpp"
#include "graft/toolkit/export.hpp"

namespace graft::toolkit {

/// Returns the name of a setting in messages unless name_settings() was called: "ImportOptions::shapes".
[[nodiscard]] GRAFT_API std::string_view field_name(Setting setting);

/// Sets the name of each setting in errors, warnings and advice to the result of `names`: a program with a command line
/// names its options. Applies to the whole process. Call it before any other function of the toolkit.
GRAFT_API void name_settings(SettingNames names);

}  // namespace graft::toolkit

// Names of settings in messages: a field in C++, an option of a program, or a keyword in Python.
#pragma once

#include <cstdint>
#include <string_view>

namespace graft {

/// The settings and functions that messages name.
enum class Setting : std::uint8_t {
#define GRAFT_SETTING(setting, field, option, keyword, driver_option) setting,
#include "graft/settings.inc"
#undef GRAFT_SETTING
};

/// Returns the name of a setting in messages: the result of field_name(), unless set_setting_names() was called.
[[nodiscard]] std::string_view setting_name(Setting setting);

/// Returns the field or function in C++: "ImportOptions::shapes".
[[nodiscard]] std::string_view field_name(Setting setting);

using SettingNames = std::string_view (*)(Setting setting);

/// Replaces the names in messages, for a program whose users know the settings by other names. Call it before any other
/// function.
void set_setting_names(SettingNames names);

}  // namespace graft

// The names of settings in messages, which programs can set.
#include "graft/toolkit/setting.hpp"

namespace graft::toolkit {

std::string_view field_name(Setting setting) { return graft::field_name(setting); }

void name_settings(SettingNames names) { set_setting_names(names); }

}  // namespace graft::toolkit

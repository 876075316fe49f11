// Maps the settings of the toolkit to options of the command line.
#include "cli/setting_names.hpp"

namespace graft::cli {

std::string_view option_of(Setting setting) {
  switch (setting) {
#define GRAFT_SETTING(setting, field, option, keyword, driver_option) \
  case Setting::setting:                                              \
    return option;
#include "graft/settings.inc"
#undef GRAFT_SETTING
  }
  return toolkit::field_name(setting);
}

}  // namespace graft::cli

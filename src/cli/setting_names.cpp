// Maps the settings of the toolkit to options of the command line.
#include "cli/setting_names.hpp"

#include <array>
#include <cstddef>

namespace graft::cli {

std::string_view option_of(Setting setting) {
  static constexpr auto options = std::to_array<std::string_view>({
#define GRAFT_SETTING(setting, field, option, keyword, driver_option) option,
#include "graft/settings.inc"
#undef GRAFT_SETTING
  });
  return options.at(static_cast<std::size_t>(setting));
}

}  // namespace graft::cli

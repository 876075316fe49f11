// Names of settings for messages: the C++ fields, or the names that a program has set.
#include "graft/setting.hpp"

#include <array>
#include <atomic>
#include <cstddef>

namespace graft {
namespace {

std::atomic<SettingNames>& current_names() {
  static std::atomic<SettingNames> names = field_name;
  return names;
}

}  // namespace

std::string_view field_name(Setting setting) {
  static constexpr auto fields = std::to_array<std::string_view>({
#define GRAFT_SETTING(setting, field, option, keyword, driver_option) field,
#include "graft/settings.inc"
#undef GRAFT_SETTING
  });
  return fields.at(static_cast<std::size_t>(setting));
}

std::string_view setting_name(Setting setting) { return current_names().load()(setting); }

void set_setting_names(SettingNames names) { current_names().store(names); }

}  // namespace graft

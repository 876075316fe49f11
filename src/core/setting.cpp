// The names of settings: of the fields, or those that a program has set.
#include "graft/setting.hpp"

#include <array>
#include <atomic>
#include <cstddef>

namespace graft {
namespace {

#define GRAFT_SETTING(name, text) text,
constexpr auto field_names = std::to_array<std::string_view>({GRAFT_SETTINGS(GRAFT_SETTING)});
#undef GRAFT_SETTING

std::atomic<SettingNames>& current_names() {
  static std::atomic<SettingNames> names = field_name;
  return names;
}

}  // namespace

std::string_view field_name(Setting setting) { return field_names.at(static_cast<std::size_t>(setting)); }

std::string_view setting_name(Setting setting) { return current_names().load()(setting); }

void set_setting_names(SettingNames names) { current_names().store(names); }

}  // namespace graft

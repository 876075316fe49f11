// Sets the names of settings in messages to the keywords of the Python functions.
#include <array>
#include <cstddef>
#include <string_view>

#include "graft/toolkit/setting.hpp"
#include "python/bindings.hpp"

namespace graft::python {
namespace {

std::string_view keyword_of(Setting setting) {
  static constexpr auto keywords = std::to_array<std::string_view>({
#define GRAFT_SETTING(setting, field, option, keyword, driver_option) keyword,
#include "graft/settings.inc"
#undef GRAFT_SETTING
  });
  return keywords.at(static_cast<std::size_t>(setting));
}

}  // namespace

void name_settings() { toolkit::name_settings(keyword_of); }

}  // namespace graft::python

// Sets the names of settings in messages to the keywords of the Python functions.
#include <string_view>

#include "graft/toolkit/setting.hpp"
#include "python/bindings.hpp"

namespace graft::python {
namespace {

std::string_view keyword_of(Setting setting) {
  switch (setting) {
#define GRAFT_SETTING(setting, field, option, keyword, driver_option) \
  case Setting::setting:                                              \
    return keyword;
#include "graft/settings.inc"
#undef GRAFT_SETTING
  }
  return toolkit::field_name(setting);
}

}  // namespace

void name_settings() { toolkit::name_settings(keyword_of); }

}  // namespace graft::python

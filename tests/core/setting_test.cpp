// Tests the names of settings in messages: the field, or the name that a program sets.
#include "graft/setting.hpp"

#include <gtest/gtest.h>

#include <string_view>

namespace graft {
namespace {

std::string_view option_of(Setting setting) { return setting == Setting::data ? "--data" : field_name(setting); }

TEST(Setting, IsCalledByItsFieldUntilAProgramNamesIt) {
  EXPECT_EQ(setting_name(Setting::input_shapes), "ImportOptions::shapes");
  EXPECT_EQ(setting_name(Setting::data), "QuantizeOptions::data");
  set_setting_names(option_of);
  EXPECT_EQ(setting_name(Setting::data), "--data");
  EXPECT_EQ(setting_name(Setting::input_shapes), "ImportOptions::shapes");
  set_setting_names(field_name);
  EXPECT_EQ(setting_name(Setting::data), "QuantizeOptions::data");
}

}  // namespace
}  // namespace graft

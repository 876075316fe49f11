// Tests the suggestions after a build, from its report.
#include "present/text/next_steps_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graft/operator/registry.hpp"

namespace graft::present {
namespace {

TEST(NextStepsText, the_canary_of_a_users_own_plugin_has_all_libraries_of_the_build) {
  static OperatorType type = *find_operator("LeakyReLU");
  type.name = "NextStepsTestOperator";
  type.drop_ins.clear();
  ASSERT_TRUE(add_operator_library({.file = "my.so", .plugin_namespace = "my", .operators = {&type}}).ok());
  report::BuildReport report;
  report.model = "folder/m.onnx";
  report::PluginLayer& plugin = report.network.plugins.emplace_back();
  plugin.plugin = "NextStepsTestOperator";
  plugin.plugin_namespace = "my";
  for (const char* file : {"one of mine.so", "graft.so"}) report.plugin_libraries.emplace_back().path = file;
  const auto next = canary_of_own_plugins(report);
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->command,
            "graft canary folder/m.onnx -o folder/m.canary --operators my.so --plugin-lib 'one of mine.so' "
            "--plugin-lib graft.so");
  EXPECT_THAT(next->why, testing::HasSubstr("the CUDA kernel of NextStepsTestOperator computes"));
  plugin.plugin_namespace = "of another";
  EXPECT_FALSE(canary_of_own_plugins(report).has_value()) << "a plugin of the same name";
}

}  // namespace
}  // namespace graft::present

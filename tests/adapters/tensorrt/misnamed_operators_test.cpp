// Tests that a library with invalid definitions offers TensorRT no plugin, and logs the reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "adapters/tensorrt/plugin_host.hpp"

namespace graft::tensorrt {
namespace {

TEST(MisnamedOperators, AreNoPlugins) {
  PluginLibrary library(MISNAMED);
  EXPECT_TRUE(library.creators().empty());
  EXPECT_THAT(library.take_log(), testing::ElementsAre(testing::HasSubstr(
                                      "Swapped: operator Misnamed, a plugin's inputs `x`, `wieght`: "
                                      "`wieght` is not an input of the operator; no plugin is registered")));
}

}  // namespace
}  // namespace graft::tensorrt

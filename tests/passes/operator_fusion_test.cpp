// Tests the order of the operators' fusions.
#include "passes/operator_fusion.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "graft/error.hpp"
#include "passes/pipeline.hpp"

namespace graft::passes::operator_fusion_test {
namespace {

std::vector<std::string_view> names_of(std::span<const Pass> passes) {
  std::vector<std::string_view> names;
  for (const Pass& pass : passes) names.push_back(pass.name);
  return names;
}

OperatorFusion fusion(std::string_view name, std::string_view after = {}) {
  return {.pass = {.name = name, .why = ""}, .after = after};
}

TEST(OperatorFusion, RunsAfterTheOneThatItNamesAndOtherwiseInTheOrderOfTheList) {
  const OperatorFusion a = fusion("a", "c");
  const OperatorFusion b = fusion("b");
  const OperatorFusion c = fusion("c", "b");
  const OperatorFusion d = fusion("d");
  EXPECT_THAT(names_of(ordered_passes(std::vector{&a, &b, &c, &d})), testing::ElementsAre("b", "c", "a", "d"));
}

TEST(OperatorFusion, NamingOneThatIsNotThereOrItselfIsAnError) {
  const OperatorFusion missing = fusion("a", "b");
  const OperatorFusion itself = fusion("a", "a");
  EXPECT_THROW((void)ordered_passes(std::vector{&missing}), Error);
  EXPECT_THROW((void)ordered_passes(std::vector{&itself}), Error);
}

TEST(OperatorFusion, ThePipelineHasAllOfThemTogetherInTheirOrder) {
  const auto fusions = names_of(ordered_passes(operator_fusions()));
  const auto pipeline_names = names_of(pipeline());
  ASSERT_FALSE(fusions.empty());
  const auto first = std::find(pipeline_names.begin(), pipeline_names.end(), fusions.front());
  ASSERT_GE(pipeline_names.end() - first, static_cast<std::ptrdiff_t>(fusions.size()));
  EXPECT_TRUE(std::equal(fusions.begin(), fusions.end(), first));
}

}  // namespace
}  // namespace graft::passes::operator_fusion_test

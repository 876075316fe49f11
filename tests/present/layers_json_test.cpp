// Tests the keys and values of the JSON of `graft verify --layers` that are not the members of its report.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "graft/report/layers.hpp"
#include "present/json/fields.hpp"

namespace graft::present {
namespace {

using testing::ElementsAre;

/// Returns a report on one tensor, which is 'a' in the reference and 'b' in the candidate.
report::LayersReport one_tensor() {
  report::LayersReport report;
  report.runs = 1;
  report::ComparedLayer& layer = report.layers.emplace_back();
  layer.reference = {.name = "a", .type = "f32[2]"};
  layer.candidate = {.name = "b", .type = "f16[2]"};
  layer.matched_by = report::MatchedBy::structure;
  layer.candidate_node = {.id = "b", .name = "tanh", .op = "Tanh", .domain = ""};
  layer.is_output = true;
  layer.difference.count = 2;
  layer.difference.nan_disagreements = 1;
  layer.failed_runs = 1;
  layer.error.histogram.counts = {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  layer.candidate_range.nan = 1;
  return report;
}

TEST(LayersJson, a_tensor_has_its_names_types_and_figures) {
  report::LayersReport report = one_tensor();
  report.layers[0].layout.emplace().kind = report::Rearrangement::Kind::channels;
  const Json layer = json_of_report(report)["layers"][0];
  EXPECT_EQ(layer["reference"], "a");
  EXPECT_EQ(layer["candidate"], "b");
  EXPECT_EQ(layer["reference_type"], "f32[2]");
  EXPECT_EQ(layer["candidate_type"], "f16[2]");
  EXPECT_EQ(layer["matched_by"], "structure");
  EXPECT_EQ(layer["candidate_node"], "tanh");
  EXPECT_EQ(layer["equal"], false);
  EXPECT_EQ(layer["elements"], 2);
  EXPECT_EQ(layer["max_absolute"], "nan");
  EXPECT_EQ(layer["candidate_range"]["nan"], 1);
  EXPECT_TRUE(layer["candidate_range"]["lowest"].is_null());
  EXPECT_EQ(layer["layout"], "channels swapped");
  EXPECT_TRUE(layer["rounding"].is_null());
  std::vector<std::string> bins;
  for (const auto& bin : layer["error_histogram"].items()) bins.push_back(bin.key());
  EXPECT_THAT(
      bins, ElementsAre("0", "<1e-7", "<1e-6", "<1e-5", "<1e-4", "<1e-3", "<1e-2", "<1e-1", "<1", ">=1", "not finite"));
  EXPECT_EQ(layer["error_histogram"]["0"], 1);
  EXPECT_EQ(layer["error_histogram"]["not finite"], 1);
}

TEST(LayersJson, tensors_are_named_where_the_report_has_their_index) {
  report::LayersReport report = one_tensor();
  EXPECT_TRUE(json_of_report(report)["nan_begins"].is_null());
  EXPECT_TRUE(json_of_report(report)["weakest"].is_null());
  EXPECT_TRUE(json_of_report(report)["first_divergence"].is_null());
  report.nan_begins = 0;
  report.weakest = 0;
  report.first.emplace().order = report::Rearrangement::Kind::flipped;
  const Json json = json_of_report(report);
  EXPECT_EQ(json["nan_begins"], "b");
  EXPECT_EQ(json["weakest"], "b");
  EXPECT_EQ(json["first_divergence"]["layer"], 0);
  EXPECT_EQ(json["first_divergence"]["layout"], "mirrored");
  EXPECT_FALSE(json["first_divergence"].contains("reference_nodes"));
}

TEST(LayersJson, a_failure_without_a_node_has_an_empty_name) {
  report::LayersReport report;
  report.failure.emplace().message = "the type is not supported";
  const Json json = json_of_report(report);
  EXPECT_EQ(json["failure"]["node"], "");
  EXPECT_EQ(json["failure"]["message"], "the type is not supported");
  EXPECT_EQ(json["equal"], false);
  EXPECT_TRUE(json["reduced"].is_null());
  EXPECT_TRUE(json["emulated"].is_null());
}

}  // namespace
}  // namespace graft::present

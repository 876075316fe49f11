// Tests that any string in a model stays a string in the JSON and in the page.
#include "present/html/report.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "present/html/viewer.hpp"

namespace graft::html {
namespace {

Report sample(const std::string& name) {
  Report report;
  report.command = "inspect";
  report.version = "1";
  report.title = name;
  report.kinds = {{"bad", "x", "unsupported", "nobody runs it", Tone::red, true}};
  Graph graph{.title = name, .nodes = {}, .edges = {}};
  graph.nodes.resize(2);
  graph.nodes[0].name = name;
  graph.nodes[0].kind = "bad";
  graph.nodes[0].attributes = {{name, name}};
  graph.edges = {{0, 1, name}};
  report.graphs.push_back(graph);
  Table table{.title = name, .columns = {{name, Column::Type::code}, {"error", Column::Type::number}}};
  table.rows = {{name, std::numeric_limits<double>::infinity()}, {Place{0, 1}, std::nan("")}, {{}, 0.5}};
  report.sections.emplace_back(table);
  return report;
}

std::size_t count_of(const std::string& text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

TEST(Report, JsonNamesItsSchemaAndVersion) {
  const auto json = nlohmann::json::parse(json_of(sample("a")));
  EXPECT_EQ(json["schema"], "graft.report");
  EXPECT_EQ(json["version"], schema_version);
  EXPECT_EQ(json["graphs"][0]["nodes"][0]["kind"], "bad");
  EXPECT_FALSE(json["graphs"][0].contains("layout")) << "of the page alone";
  const auto rows = json["sections"][0]["rows"];
  EXPECT_EQ(rows[0][1], "inf");
  EXPECT_EQ(rows[1][0], (nlohmann::json{{"graph", 0}, {"node", 1}}));
  EXPECT_EQ(rows[2][1], 0.5);
}

TEST(Report, JsonHasPlotsAndDistributions) {
  Report report = sample("a");
  report.distributions = {{.title = "t", .bin_width = 0.5, .counts = {3, 0, 1}, .zeros = 7, .threshold = 1.25}};
  report.graphs[0].nodes[1].distribution = 0;
  Table table{.title = "t", .columns = {{"x", Column::Type::node}, {"d", Column::Type::distribution, "", true}}};
  table.rows = {{Place{0, 1, "tensor"}, DistributionAt{0}}};
  report.sections.emplace_back(table);
  report.sections.emplace_back(Scatter{.title = "plot",
                                       .x = {{"cost"}, {"bytes", 0}},
                                       .y = {"quality"},
                                       .series = {{"good", Tone::green}},
                                       .lines = {{"limit", 3}},
                                       .points = {{.label = "p", .x = {1, 2}, .y = 4, .is_chosen = true}}});
  const auto json = nlohmann::json::parse(json_of(report));
  EXPECT_EQ(json["distributions"][0]["counts"], (nlohmann::json{3, 0, 1}));
  EXPECT_EQ(json["distributions"][0]["threshold"], 1.25);
  EXPECT_EQ(json["graphs"][0]["nodes"][0]["distribution"], nullptr);
  EXPECT_EQ(json["graphs"][0]["nodes"][1]["distribution"], 0);
  EXPECT_EQ(json["sections"][1]["rows"][0][0], (nlohmann::json{{"graph", 0}, {"node", 1}, {"text", "tensor"}}));
  EXPECT_EQ(json["sections"][1]["rows"][0][1], 0);
  EXPECT_EQ(json["sections"][1]["columns"][1]["low_first"], true);
  const auto plot = json["sections"][2];
  EXPECT_EQ(plot["section"], "scatter");
  EXPECT_EQ(plot["points"][0]["x"], (nlohmann::json{1, 2}));
  EXPECT_EQ(plot["points"][0]["chosen"], true);
  EXPECT_EQ(plot["lines"][0]["y"], 3);
  EXPECT_EQ(plot["x"][1]["digits"], 0);
}

TEST(Report, TextsCannotEndTheElementTheyStandIn) {
  const std::string plain = html_of(sample("a"));
  for (const char* name : {"</script><script>alert(1)</script>", "<!--<script>", "<img src=x onerror=alert(1)>"}) {
    const std::string page = html_of(sample(name));
    EXPECT_EQ(count_of(page, "<script"), count_of(plain, "<script"));
    EXPECT_EQ(count_of(page, "</script"), count_of(plain, "</script"));
    EXPECT_EQ(count_of(page, "<!--"), count_of(plain, "<!--"));
    EXPECT_EQ(page.find("<img"), std::string::npos);
    EXPECT_EQ(nlohmann::json::parse(json_of(sample(name)))["title"], name);
  }
}

TEST(Report, BytesThatAreNoTextAreReplaced) {
  const auto json = nlohmann::json::parse(json_of(sample("\xff\xfe name \x01")));
  EXPECT_EQ(json["title"], "\xef\xbf\xbd\xef\xbf\xbd name \x01");
}

TEST(Report, PageIsTheViewerWithTheData) {
  EXPECT_EQ(count_of(std::string(viewer), viewer_data), 1);
  const std::string page = html_of(sample("a"));
  EXPECT_TRUE(page.starts_with("<!doctype html>"));
  EXPECT_EQ(page.find(viewer_data), std::string::npos);
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
}

TEST(Report, HistogramHasABinForEachPowerOfTen) {
  const Histogram histogram = histogram_of({0, 0, 2e-7, 9e-7, 3e-5, std::nan(""), 1e-300});
  std::vector<std::pair<std::string, std::size_t>> bins;
  for (const Histogram::Bin& bin : histogram.bins) bins.emplace_back(bin.label, bin.count);
  EXPECT_EQ(bins.front(), std::pair(std::string("0"), std::size_t{2}));
  EXPECT_EQ(bins[1], std::pair(std::string("below 1e-12"), std::size_t{1}));
  EXPECT_EQ(bins.back(), std::pair(std::string("not finite"), std::size_t{1}));
  EXPECT_EQ(bins[bins.size() - 2], std::pair(std::string("1e-5 to 1e-4"), std::size_t{1}));
  EXPECT_EQ(bins[bins.size() - 3], std::pair(std::string("1e-6 to 1e-5"), std::size_t{0}));
  EXPECT_EQ(bins[bins.size() - 4], std::pair(std::string("1e-7 to 1e-6"), std::size_t{2}));
}

}  // namespace
}  // namespace graft::html

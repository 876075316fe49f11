// Tests the page of a benchmark on a GPU, for a result like those of python/graft/bench.
#include "present/html/bench_page.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

namespace graft::present {
namespace {

using nlohmann::json;

json row(const std::string& op, const std::string& rest) {
  return {{"index", 0},
          {"name", op + " " + rest},
          {"operator", op},
          {"to_reach", {{"of_copy", 0.95}, {"of_eager", 0}}},
          {"operations", 0},
          {"dtype", "f32"},
          {"bytes", 1 << 29},
          {"peers", {{"eager", {{"us", 300.0}, {"warm_us", nullptr}, {"of_copy", 0.4}, {"tflop_s", nullptr}}}}},
          {"difference", nullptr},
          {"us", 130.0},
          {"warm_us", nullptr},
          {"of_copy", 0.97},
          {"tflop_s", nullptr},
          {"variant", "vector16"},
          {"misses", json::array()}};
}

json sample() {
  json small = row("LeakyReLU", "f32 1x64x56x56 alpha=0.1");
  small["index"] = 1;
  small["warm_us"] = 4.0;
  small["misses"] = {"1.6 times an empty kernel"};
  json convolution = row("Convolution", "f16 8x64x9x9 group=1 activation=\"none\"");
  convolution["dtype"] = "f16";
  convolution["operations"] = 1e12;
  convolution["tflop_s"] = 500.0;
  convolution["peers"] = {{"compiled", {{"failed", "why"}}}};
  json broken = row("Padding", "f32 2x2");
  for (const char* figure : {"us", "warm_us", "of_copy", "tflop_s", "variant"}) broken.erase(figure);
  broken["failed"] = "no variant";
  return {{"graft", "0.1.0"},
          {"device", "cuda"},
          {"name", "NVIDIA <Test>"},
          {"torch", "2.11.0"},
          {"copy_gb_s", 4200.0},
          {"empty_kernel_us", 3.5},
          {"matmul_tflop_s", {{"f16", 800.0}}},
          {"seconds", 12.0},
          {"results", {small, row("LeakyReLU", "f32 16x256x128x128"), convolution, broken}},
          {"left_out", {"Upsampling f32 1x1"}},
          {"wrong", json::array()}};
}

template <class Section>
std::vector<Section> sections_of(const html::Report& page) {
  std::vector<Section> found;
  for (const html::Section& section : page.sections) {
    if (const auto* each = std::get_if<Section>(&section)) found.push_back(*each);
  }
  return found;
}

TEST(BenchPage, EachOperatorHasItsCharts) {
  const std::vector<html::BarChart> charts = sections_of<html::BarChart>(page_of_operators(sample()));
  ASSERT_EQ(charts.size(), 3);
  EXPECT_EQ(charts[0].title, "LeakyReLU: Bandwidth, as a fraction of a copy");
  EXPECT_EQ(charts[0].rows.at(0).mark, 0.95);
  EXPECT_EQ(charts[0].line, 1.0);
  EXPECT_EQ(charts[0].series.size(), 3) << "Graft and the peers that were timed anywhere";
  EXPECT_EQ(charts[0].rows.at(0).values, (std::vector<std::optional<double>>{0.97, 0.4, std::nullopt}));
  EXPECT_EQ(charts[1].line, 3.5) << "an empty kernel";
  EXPECT_EQ(charts[1].rows.at(0).label, "f32 1x64x56x56");
  EXPECT_EQ(charts[1].rows.at(0).note, "alpha=0.1");
  EXPECT_TRUE(charts[1].rows.at(0).is_problem);
  EXPECT_EQ(charts[2].title, "Convolution: Arithmetic, TFLOP/s");
  EXPECT_EQ(charts[2].rows.at(0).note, "group=1 activation=\"none\"");
  EXPECT_EQ(charts[2].rows.at(0).mark, 800.0) << "the matrix product: memory would allow more";
}

TEST(BenchPage, TablesHaveEveryCase) {
  const std::vector<html::Table> tables = sections_of<html::Table>(page_of_operators(sample()));
  ASSERT_EQ(tables.size(), 2);
  ASSERT_EQ(tables[0].rows.size(), 4);
  for (const auto& cells : tables[0].rows) EXPECT_EQ(cells.size(), tables[0].columns.size());
  EXPECT_EQ(std::get<std::string>(tables[0].rows[0][2]), "short");
  EXPECT_EQ(std::get<std::string>(tables[0].rows[1][2]), "good");
  EXPECT_EQ(std::get<std::string>(tables[0].rows[3][2]), "failed");
  EXPECT_EQ(std::get<std::string>(tables[0].rows[3].back()), "no variant");
  EXPECT_EQ(tables[1].title, "Not timed");
}

TEST(BenchPage, RunsOfAModelAreAllInTheHistogram) {
  const html::Report page = page_of_model({.model = "a/model.onnx",
                                           .shapes = {{"image", {1, 8}}},
                                           .why_sizes = {},
                                           .seconds = {0.002, 0.002, 0.001, 0.001, 0.003, 0.5}});
  EXPECT_EQ(page.title, "model.onnx");
  EXPECT_EQ(page.summary.at(2).name, "input");
  EXPECT_EQ(page.summary.at(2).text, "image: 1x8");
  const html::Histogram histogram = sections_of<html::Histogram>(page).at(0);
  EXPECT_EQ(histogram.bins.front().count, 2);
  EXPECT_EQ(histogram.bins.back().label, "more than 6.000");
  EXPECT_EQ(histogram.bins.back().count, 1);
  const html::Report same =
      page_of_model({.model = "m.onnx", .shapes = {}, .why_sizes = {}, .seconds = {0.001, 0.001}});
  EXPECT_EQ(sections_of<html::Histogram>(same).at(0).bins.front().count, 2);
}

}  // namespace
}  // namespace graft::present

// Tests the page of a benchmark on a GPU, for a result like those of python/graft/bench.
#include "present/html/bench_page.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

namespace graft::present {
namespace {

report::CaseTimes row(const std::string& op, const std::string& rest) {
  report::CaseTimes times;
  times.us = 130.0;
  times.of_copy = 0.97;
  times.bytes = 1 << 29;
  times.dtype = "f32";
  times.name = op + " " + rest;
  times.op = op;
  times.peers["eager"].us = 300.0;
  times.peers["eager"].of_copy = 0.4;
  times.to_reach.of_copy = 0.95;
  times.variant = "vector16";
  return times;
}

report::OperatorTimes sample() {
  report::CaseTimes small = row("LeakyReLU", "f32 1x64x56x56 alpha=0.1");
  small.index = 1;
  small.warm_us = 4.0;
  small.misses = {"1.6 times an empty kernel"};
  report::CaseTimes convolution = row("Convolution", "f16 8x64x9x9 group=1 activation=\"none\"");
  convolution.dtype = "f16";
  convolution.operations = 1e12;
  convolution.tflop_s = 500.0;
  convolution.peers.clear();
  convolution.peers["compiled"].failed = "why";
  report::CaseTimes broken = row("Padding", "f32 2x2");
  broken.us.reset();
  broken.of_copy.reset();
  broken.variant.reset();
  broken.failed = "no variant";
  report::OperatorTimes times;
  times.graft = "0.1.0";
  times.device = "cuda";
  times.name = "NVIDIA <Test>";
  times.torch = "2.11.0";
  times.copy_gb_s = 4200.0;
  times.empty_kernel_us = 3.5;
  times.matmul_tflop_s = {{"f16", 800.0}};
  times.seconds = 12.0;
  times.results = {small, row("LeakyReLU", "f32 16x256x128x128"), convolution, broken};
  times.left_out = {"Upsampling f32 1x1"};
  return times;
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

// Tests the options of quantize for int8, other than data.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

#include "graft/toolkit/import.hpp"
#include "graft/toolkit/quantize.hpp"
#include "graft/toolkit/run.hpp"
#include "tests/toolkit/digits.hpp"

namespace graft::toolkit {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

std::string text_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

QuantizeOptions int8() {
  QuantizeOptions options;
  options.precision = Precision::int8;
  options.data = images(64);
  return options;
}

std::vector<std::string> types_of(const QuantizeReport& result) {
  std::vector<std::string> types;
  for (const QuantizedNode& node : result.nodes) types.push_back(node.type);
  return types;
}

TEST(Int8Options, AMetricIsAskedForTheF32ModelAndForEachModelThatIsTried) {
  const Model model = load(digits("digits.onnx"));
  std::size_t asked = 0;
  QuantizeOptions options = int8();
  // The metric decreases with the number of int8 nodes, because QuantizeLinear and DequantizeLinear add nodes.
  options.int8.metric = [&](const Model& tried) {
    ++asked;
    EXPECT_EQ(Session(tried).run(images(1)).size(), 2);
    return -static_cast<double>(tried.node_count());
  };
  const QuantizeReport plain = quantize(model, options);
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(plain.metric_int8, -static_cast<double>(plain.model.node_count()));
  EXPECT_GT(plain.metric_f32, plain.metric_int8);
  EXPECT_TRUE(plain.met());

  options.int8.max_drop = *plain.metric_f32 - *plain.metric_int8 - 1;
  const QuantizeReport limited = quantize(model, options);
  EXPECT_GT(asked, 4);
  EXPECT_TRUE(limited.met());
  EXPECT_LT(limited.model.node_count(), plain.model.node_count());
}

TEST(Int8Options, WhatTheMetricThrowsReachesTheCaller) {
  QuantizeOptions options = int8();
  options.int8.metric = [](const Model&) -> double { throw std::string("mine"); };
  EXPECT_THROW(static_cast<void>(quantize(load(digits("digits.onnx")), options)), std::string);
}

TEST(Int8Options, TheRestMayBeF16) {
  QuantizeOptions options = int8();
  options.only = {"/conv1/Conv"};
  const Model model = load(digits("digits.onnx"));
  EXPECT_THAT(types_of(quantize(model, options)), Not(Contains("f16")));
  options.int8.rest = Precision::f16;
  EXPECT_THAT(types_of(quantize(model, options)), Contains("f16"));
}

TEST(Int8Options, ACacheStandsForData) {
  const auto folder = std::filesystem::path(::testing::TempDir());
  const auto cache = folder / "toolkit_scales.cache";
  const auto again = folder / "toolkit_scales_again.cache";
  const Model model = load(digits("digits.onnx"));
  EXPECT_GT(write_calibration_cache(quantize(model, int8()).model, cache), 0);
  QuantizeOptions options = int8();
  options.data = {};
  options.int8.cache = cache;
  static_cast<void>(write_calibration_cache(quantize(model, options).model, again));
  EXPECT_EQ(text_of(cache), text_of(again));
  std::filesystem::remove(cache);
  std::filesystem::remove(again);

  const auto refused = [&] { return message_of([&] { static_cast<void>(quantize(model, options)); }); };
  options.int8.calibration = ThresholdMethod::mse;
  EXPECT_THAT(refused(), HasSubstr("int8.calibration: this option does not apply with QuantizeOptions::int8.cache"));
  options.int8.calibration.reset();
  options.int8.max_drop = 1;
  EXPECT_THAT(refused(), HasSubstr("int8.max_drop: this option needs QuantizeOptions::data"));
}

TEST(Int8Options, SamplesMayBeInAFile) {
  const auto file = std::filesystem::path(::testing::TempDir()) / "toolkit_images.npz";
  write_npz(file, images(64));
  const Model model = load(digits("digits.onnx"));
  QuantizeOptions options = int8();
  const QuantizeReport from_memory = quantize(model, options);
  options.data = {};
  options.data_files.sources = {file.string()};
  const QuantizeReport from_file = quantize(model, options);
  ASSERT_EQ(from_file.outputs.size(), from_memory.outputs.size());
  EXPECT_EQ(from_file.outputs[0].snr_db, from_memory.outputs[0].snr_db);
  options.int8.samples = 8;
  EXPECT_NE(quantize(model, options).outputs[0].snr_db, from_memory.outputs[0].snr_db);
  options.data_files.recipe = digits("recipe.yaml");
  EXPECT_THAT(message_of([&] { static_cast<void>(quantize(model, options)); }), HasSubstr("DataFiles::recipe"));
  std::filesystem::remove(file);
}

TEST(Int8Options, BiasCorrectionChangesTheOutputs) {
  const Model model = load(digits("digits.onnx"));
  QuantizeOptions options = int8();
  const QuantizeReport plain = quantize(model, options);
  options.int8.improve.bias = true;
  EXPECT_NE(quantize(model, options).outputs[0].snr_db, plain.outputs[0].snr_db);
}

TEST(Int8Options, OfAnotherPrecisionAreRefusedByName) {
  const Model model = load(digits("digits.onnx"));
  QuantizeOptions options;
  options.int8.max_drop = 1;
  EXPECT_THAT(message_of([&] { static_cast<void>(quantize(model, options)); }),
              HasSubstr("int8.max_drop: this option does not apply to QuantizeOptions::precision f16"));
  options = int8();
  options.typed_io = true;
  EXPECT_THAT(message_of([&] { static_cast<void>(quantize(model, options)); }), HasSubstr("typed_io"));
}

TEST(Int8Options, NumbersThatMeanNothingAreRefusedByName) {
  const Model model = load(digits("digits.onnx"));
  const auto refused = [&](const std::function<void(Int8Options&)>& change) {
    QuantizeOptions options = int8();
    change(options.int8);
    return message_of([&] { static_cast<void>(quantize(model, options)); });
  };
  EXPECT_THAT(refused([](Int8Options& given) { given.percentile = 0; }), HasSubstr("int8.percentile: found 0"));
  EXPECT_THAT(refused([](Int8Options& given) { given.percentile = std::nan(""); }),
              HasSubstr("int8.percentile: found nan"));
  EXPECT_THAT(refused([](Int8Options& given) { given.samples = -1; }), HasSubstr("int8.samples: found -1"));
  EXPECT_THAT(refused([](Int8Options& given) { given.judged = 0; }), HasSubstr("int8.judged: found 0"));
  EXPECT_THAT(refused([](Int8Options& given) {
                given.calibration = ThresholdMethod::mse;
                given.percentile = 90;
              }),
              HasSubstr("int8.percentile"));
}

TEST(TypedIo, GivesInputsTheType) {
  const Model model = load(digits("digits.onnx"));
  QuantizeOptions options;
  options.shapes = {{"image", {2, 1, 8, 8}}};
  EXPECT_EQ(quantize(model, options).model.inputs()[0].type, "f32");
  options.typed_io = true;
  EXPECT_EQ(quantize(model, options).model.inputs()[0].type, "f16");
}

}  // namespace
}  // namespace graft::toolkit

// Tests the quantization of a trained network to int8: planning, calibration, improvement, placement, comparison, and
// nodes that stay in f32 because of a limit. tests/cli/test_quantize_int8.py compares the values with ONNX Runtime.
#include "quant/search/choose_int8.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "graft/error.hpp"
#include "onnx/onnx_io.hpp"
#include "quant/calibrate/calibration_data.hpp"
#include "runtime/default_engine.hpp"
#include "tests/support/folders.hpp"

namespace graft::quant::choose_int8_test {
namespace {

using runtime::default_engine;
using testing::HasSubstr;
using testing::ThrowsMessage;

class ChooseInt8 : public testing::Test {
 protected:
  ChosenInt8 choose(const Int8Options& options) const {
    return choose_int8(runtime::default_engine(), model_, data_, options);
  }

  static double worst_of(const ChosenInt8& chosen) {
    double worst = 1e9;
    for (const verify::OutputFigures& output : chosen.outputs) worst = std::min(worst, output.snr_db.value_or(worst));
    return worst;
  }

 private:
  std::filesystem::path folder_ = golden_folder().parent_path().parent_path() / "examples" / "digits";
  onnx::Model model_ = onnx::read_onnx(folder_ / "digits.onnx");
  CalibrationData data_ = open_calibration_data(folder_ / "digits_test.npz", model_, {}, 96);
};

TEST_F(ChooseInt8, AllFiveLayers) {
  const ChosenInt8 chosen = choose({});
  EXPECT_TRUE(chosen.met);
  EXPECT_EQ(chosen.samples, 96);
  EXPECT_EQ(std::count_if(chosen.plan.nodes.begin(), chosen.plan.nodes.end(),
                          [](const Int8Node& node) { return node.kind == Int8Kind::computes && node.has_weight(); }),
            5);
  EXPECT_GT(worst_of(chosen), 30);
  EXPECT_NO_THROW(chosen.placed.model.graph().check());
}

TEST_F(ChooseInt8, EveryImprovementAtOnce) {
  Int8Options options;
  options.improve = {.equalize = true, .smooth = true, .round = true, .bias = true};
  const ChosenInt8 chosen = choose(options);
  EXPECT_FALSE(chosen.rounded.empty());
  EXPECT_FALSE(chosen.corrected.empty());
  EXPECT_GT(worst_of(chosen), 30);
}

TEST_F(ChooseInt8, ALimitKeepsLayersAndTheRestIsF16) {
  const double plain = worst_of(choose({}));
  Int8Options options;
  options.limit_db = plain + 3;
  options.rest = report::Precision::f16;
  const ChosenInt8 chosen = choose(options);
  EXPECT_TRUE(chosen.met);
  EXPECT_EQ(chosen.sensitivities.size(), 5U);
  EXPECT_GE(worst_of(chosen), plain + 3);
  EXPECT_TRUE(chosen.rest.has_value());
}

TEST_F(ChooseInt8, InF8AllFiveLayersToo) {
  Int8Options options;
  options.type = EightBits::f8;
  options.improve = {.equalize = true, .smooth = true, .bias = true};
  const ChosenInt8 chosen = choose(options);
  EXPECT_EQ(std::count_if(chosen.plan.nodes.begin(), chosen.plan.nodes.end(),
                          [](const Int8Node& node) { return node.kind == Int8Kind::computes && node.has_weight(); }),
            5);
  EXPECT_FALSE(chosen.corrected.empty());
  EXPECT_GT(worst_of(chosen), 22);  // 4 bits: 6.02 dB each
  EXPECT_TRUE(chosen.cache.entries.empty());
  for (const QuantizedTensor& tensor : chosen.tensors) {
    EXPECT_FLOAT_EQ(tensor.scale * 448, static_cast<float>(tensor.threshold)) << tensor.name;
    EXPECT_EQ(tensor.saturated, 0) << tensor.name;
  }
}

TEST_F(ChooseInt8, WhatIsOfInt8IsRefusedInF8) {
  Int8Options options;
  options.type = EightBits::f8;
  options.improve.round = true;
  EXPECT_THAT([&] { (void)choose(options); }, ThrowsMessage<Error>(HasSubstr("whole steps of int8")));
  options.improve.round = false;
  options.calibration = ThresholdMethod::entropy;
  EXPECT_THAT([&] { (void)choose(options); }, ThrowsMessage<Error>(HasSubstr("entropy counts 128 steps of int8")));
}

TEST_F(ChooseInt8, APatternThatMatchesNothing) {
  Int8Options options;
  options.keep = {"nowhere*"};
  EXPECT_THAT([&] { (void)choose(options); }, ThrowsMessage<Error>(HasSubstr("nowhere*")));
}

}  // namespace
}  // namespace graft::quant::choose_int8_test

// Tests verify_layers with the calls of an application.
#include "graft/toolkit/verify_layers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "graft/toolkit/import.hpp"
#include "graft/toolkit/quantize.hpp"
#include "graft/toolkit/run.hpp"
#include "tests/toolkit/digits.hpp"

namespace graft::toolkit {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// Returns options under which rounding to f16 is a difference.
VerifyOptions strict() {
  VerifyOptions options;
  options.data = images(4);
  options.relative = 1e-6;
  return options;
}

TEST(VerifyLayers, AModelIsTheSameAsItself) {
  const Model model = load(digits("digits.onnx"));
  const LayersResult result = verify_layers(model, model);
  EXPECT_EQ(result.verdict(), Verdict::same);
  EXPECT_FALSE(result.first);
  EXPECT_EQ(result.runs, 1);
  EXPECT_GE(result.layers.size(), model.outputs().size());
}

TEST(VerifyLayers, NamesTheFirstDivergenceAndTheNodesThatShowItByThemselves) {
  const Model model = load(digits("digits.onnx"));
  const Model in_f16 = quantize(model, {.precision = Precision::f16}).model;
  const LayersResult result = verify_layers(model, in_f16, strict());
  EXPECT_EQ(result.verdict(), Verdict::different);
  ASSERT_TRUE(result.first);
  ASSERT_THAT(result.first->candidate_nodes, Not(IsEmpty()));
  const ComparedTensor& tensor = result.layers.at(result.first->layer);
  EXPECT_EQ(result.first->candidate_nodes.back(), tensor.candidate_node);
  EXPECT_EQ(tensor.verdict(), Verdict::different);
  EXPECT_GT(tensor.difference.mismatched, 0);
  EXPECT_THAT(result.first->why, Not(IsEmpty()));

  VerifyOptions by_themselves = strict();
  by_themselves.data = result.reduced->inputs;
  EXPECT_EQ(verify(result.reduced->reference, result.reduced->candidate, by_themselves).verdict(), Verdict::different);
  EXPECT_LT(result.reduced->reference.node_count(), model.node_count());
}

TEST(VerifyLayers, EmulatesATypeWithoutADevice) {
  const Model model = load(digits("digits.onnx"));
  VerifyOptions options;
  options.data = images(8);
  const LayersResult exact = verify_layers(model, model, options);
  const LayersResult emulated = verify_layers(model, model, options, Precision::int8);
  const auto differs = [](const LayersResult& result) {
    return std::any_of(result.layers.begin(), result.layers.end(),
                       [](const ComparedTensor& tensor) { return tensor.error.snr_db.has_value(); });
  };
  EXPECT_FALSE(differs(exact));
  EXPECT_TRUE(differs(emulated));
}

TEST(VerifyLayers, OfModelsWithoutOutputsNothingWasCompared) {
  EXPECT_EQ(verify_layers(Model(), Model()).verdict(), Verdict::nothing_compared);
  EXPECT_EQ(verify(Model(), Model()).verdict(), Verdict::nothing_compared);
}

TEST(VerifyLayers, SaysOfTheOutputsWhatVerifySays) {
  const Model model = load(digits("digits.onnx"));
  QuantizeOptions to_int8;
  to_int8.precision = Precision::int8;
  to_int8.data = images();
  const Model coarse = quantize(model, to_int8).model;
  EXPECT_EQ(verify_layers(model, coarse).verdict(), verify(model, coarse).verdict());
}

TEST(VerifyLayers, DataExcludeRanges) {
  const Model model = load(digits("digits.onnx"));
  VerifyOptions options = strict();
  options.ranges = {{"image", {0, 1}}};
  EXPECT_THAT(message_of([&] { static_cast<void>(verify_layers(model, model, options)); }),
              HasSubstr("VerifyOptions::ranges"));
}

}  // namespace
}  // namespace graft::toolkit

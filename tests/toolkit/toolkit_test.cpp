// Tests the toolkit with the calls of an application.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>
#include <utility>

#include "graft/toolkit/build.hpp"
#include "graft/toolkit/convert.hpp"
#include "graft/toolkit/import.hpp"
#include "graft/toolkit/inspect.hpp"
#include "graft/toolkit/quantize.hpp"
#include "graft/toolkit/run.hpp"
#include "graft/toolkit/verify.hpp"
#include "tests/toolkit/digits.hpp"

namespace graft::toolkit {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// Records the arguments of the callback.
struct Told {
  std::vector<double> fractions;
  Watch watch{.progress = [this](double fraction, std::string_view) { fractions.push_back(fraction); }, .cancel = {}};

  void expect_complete() const {
    ASSERT_THAT(fractions, Not(IsEmpty()));
    EXPECT_TRUE(std::is_sorted(fractions.begin(), fractions.end()));
    EXPECT_EQ(fractions.back(), 1);
  }
};

TEST(Load, KnowsInputsAndOutputs) {
  const Model model = load(digits("digits.onnx"));
  ASSERT_EQ(model.inputs().size(), 1);
  EXPECT_EQ(model.inputs()[0].name, "image");
  EXPECT_EQ(model.inputs()[0].type, "f32");
  EXPECT_THAT(*model.inputs()[0].shape, ElementsAre(-1, 1, 8, 8));
  EXPECT_EQ(model.outputs().size(), 2);
}

TEST(Load, ReadsEveryFormat) {
  EXPECT_GT(load(digits("digits.pb")).node_count(), 0);
  EXPECT_GT(load(digits("digits.prototxt"), {.weights = digits("digits.caffemodel"), .shapes = {}, .outputs = {}})
                .node_count(),
            0);
}

TEST(Load, ErrorsNameTheFile) {
  EXPECT_THAT(message_of([] { static_cast<void>(load("missing.onnx")); }), HasSubstr("missing.onnx"));
  EXPECT_THAT(message_of([] { static_cast<void>(load(digits("digits_test.npz"))); }), HasSubstr("digits_test.npz"));
}

TEST(Save, WritesWhatLoadReads) {
  const auto file = std::filesystem::path(::testing::TempDir()) / "toolkit_saved.onnx";
  const Model model = load(digits("digits.pb"));
  model.save(file);
  EXPECT_EQ(load(file).node_count(), model.node_count());
  std::filesystem::remove(file);
}

TEST(Convert, ProvesAndSaysWhatItDid) {
  Told told;
  const Model model = load(digits("digits.onnx"));
  const ConvertReport result = convert(model, {.check = false, .watch = told.watch});
  told.expect_complete();
  EXPECT_GT(result.proofs_run, 0);
  EXPECT_THAT(result.rejected, IsEmpty());
  ASSERT_THAT(result.rewrites, Not(IsEmpty()));
  const auto fused = std::find_if(result.rewrites.begin(), result.rewrites.end(),
                                  [](const Rewrite& rewrite) { return rewrite.pass == "fuse_l2_normalize"; });
  ASSERT_NE(fused, result.rewrites.end());
  EXPECT_THAT(fused->proof, Not(IsEmpty()));
  ASSERT_THAT(fused->nodes, Not(IsEmpty()));
  EXPECT_EQ(fused->nodes.back().op, "Div");
  ASSERT_THAT(result.choices, Not(IsEmpty()));
  EXPECT_THAT(result.choices.front().node.id, Not(IsEmpty()));
  EXPECT_LT(result.model.node_count(), model.node_count());
}

TEST(Convert, PassesAreNamed) {
  EXPECT_THAT(pass_names(), Contains("fuse_l2_normalize"));
  const Model model = load(digits("digits.onnx"));
  ConvertOptions options;
  options.check = false;
  options.only = {"fuse_l2_normalise"};
  const std::string message = message_of([&] { static_cast<void>(convert(model, options)); });
  EXPECT_THAT(message, HasSubstr("ConvertOptions::only"));
  EXPECT_THAT(message, HasSubstr("did you mean fuse_l2_normalize?"));
  options.only = {"fold_constants"};
  const ConvertReport result = convert(model, options);
  EXPECT_TRUE(std::all_of(result.rewrites.begin(), result.rewrites.end(),
                          [](const Rewrite& rewrite) { return rewrite.pass == "fold_constants"; }));
}

TEST(Convert, FunctionsCanBeLeftOut) {
  const Model model = load(digits("digits.onnx"));
  const auto bytes_of = [](const Model& converted) {
    const auto file = std::filesystem::path(::testing::TempDir()) / "toolkit_functions.onnx";
    converted.save(file);
    const auto bytes = std::filesystem::file_size(file);
    std::filesystem::remove(file);
    return bytes;
  };
  ConvertOptions options;
  options.prove = false;
  options.check = false;
  const Model whole = convert(model, options).model;
  options.functions = false;
  const Model bare = convert(model, options).model;
  EXPECT_EQ(bare.node_count(), whole.node_count());
  EXPECT_LT(bytes_of(bare), bytes_of(whole));
}

const NodeSupport& first_of(const InspectReport& result, const std::vector<NodeGroup>& groups) {
  return result.nodes.at(groups.at(0).nodes.at(0));
}

TEST(Inspect, JudgesNodesByRule) {
  Told told;
  const Model model = load(digits("digits.onnx"));
  const InspectReport result = inspect(model, {.judge = Judge::rule, .watch = told.watch});
  told.expect_complete();
  EXPECT_EQ(result.runs(), true);
  EXPECT_EQ(result.model.node_count(), model.node_count());
  EXPECT_THAT(result.problems, IsEmpty());
  EXPECT_FALSE(result.probe.has_value());
  EXPECT_THAT(result.not_asked, Not(IsEmpty()));
  ASSERT_THAT(result.others, Not(IsEmpty()));
  EXPECT_THAT(first_of(result, result.others).reason, HasSubstr("L2Normalize"));
  ASSERT_THAT(result.plain, Not(IsEmpty()));
  const NodeSupport& plain = first_of(result, result.plain);
  EXPECT_EQ(plain.support, Support::native);
  EXPECT_EQ(plain.judge, Judge::rule);
  EXPECT_THAT(plain.node.id, Not(IsEmpty()));
}

TEST(Inspect, JudgesWhatConvertMakes) {
  const Model model = load(digits("digits.onnx"));
  const InspectReport result = inspect(model, {.judge = Judge::rule, .convert = true});
  EXPECT_LT(result.model.node_count(), model.node_count());
  const auto normalize = std::find_if(result.nodes.begin(), result.nodes.end(),
                                      [](const NodeSupport& node) { return node.node.domain == "graft"; });
  ASSERT_NE(normalize, result.nodes.end());
  EXPECT_EQ(normalize->support, Support::plugin);
  EXPECT_THAT(normalize->advice, HasSubstr("graft build"));
}

TEST(Inspect, AsksTensorRTWithinTheBudget) {
  Told told;
  InspectOptions options;
  options.judge = Judge::builder;
  options.convert = true;
  options.shapes = {{"image", {{1, 1, 8, 8}, {8, 1, 8, 8}, {64, 1, 8, 8}}}};
  options.budget.max_builds = 1;
  options.watch = told.watch;
  const InspectReport result = inspect(load(digits("digits.onnx")), options);
  told.expect_complete();
  ASSERT_TRUE(result.probe.has_value());
  EXPECT_THAT(result.probe->title(), HasSubstr("TensorRT"));
  EXPECT_GE(result.probe->parses(), 1);
  EXPECT_LE(result.probe->builds(), 1);
  EXPECT_TRUE(std::any_of(result.nodes.begin(), result.nodes.end(),
                          [](const NodeSupport& node) { return node.judge == Judge::builder; }));
  EXPECT_EQ(to_string(Support::not_asked), "not asked");
}

TEST(Inspect, AsksTheInstalledTensorRTByDefault) {
  Told told;
  const InspectReport result = inspect(load(digits("digits.onnx")), {.watch = told.watch});
  told.expect_complete();
  EXPECT_EQ(result.runs(), true);
  ASSERT_TRUE(result.probe.has_value()) << result.not_asked;
  EXPECT_TRUE(result.probe->built);
  EXPECT_EQ(result.probe->builds(), 1U);
  EXPECT_THAT(result.probe->shapes, ElementsAre("image=1x1x8x8..4x1x8x8..8x1x8x8"));
  EXPECT_TRUE(std::all_of(result.nodes.begin(), result.nodes.end(),
                          [](const NodeSupport& node) { return node.judge == Judge::builder; }));
  const InspectReport of_release = inspect(load(digits("digits.onnx")), {.release = "rtx-1.5"});
  EXPECT_FALSE(of_release.probe.has_value());
  EXPECT_THAT(of_release.not_asked, Not(IsEmpty()));
}

TEST(Convert, ChecksItsResultWithTheInstalledTensorRT) {
  Told told;
  const ConvertReport result = convert(load(digits("digits.onnx")), {.prove = false, .watch = told.watch});
  told.expect_complete();
  EXPECT_EQ(result.runs(), true);
  ASSERT_TRUE(result.check.has_value()) << result.not_checked;
  EXPECT_TRUE(result.check->built);
  EXPECT_THAT(result.problems(), IsEmpty());
  const ConvertReport unchecked = convert(load(digits("digits.onnx")), {.prove = false, .check = false});
  EXPECT_EQ(unchecked.runs(), true);
  EXPECT_FALSE(unchecked.check.has_value());
  EXPECT_THAT(unchecked.not_checked, Not(IsEmpty()));
}

TEST(Convert, ChecksTheShapesBeforeItRewrites) {
  std::vector<std::string> steps;
  const Watch watch{.progress = [&](double, std::string_view step) { steps.emplace_back(step); }, .cancel = {}};
  const ShapeRange three_channels{{1, 3, 8, 8}, {1, 3, 8, 8}, {1, 3, 8, 8}};
  const Model model = load(digits("digits.onnx"));
  EXPECT_THAT(message_of([&] {
                static_cast<void>(convert(model, {.inspect = {.shapes = {{"image", three_channels}}}, .watch = watch}));
              }),
              HasSubstr("the minimum has the size 3 in dimension 1, which the model fixes at 1"));
  for (const std::string& pass : pass_names()) EXPECT_THAT(steps, testing::Not(testing::Contains(pass)));
}

TEST(Convert, ComparesTheValuesOfItsResult) {
  const Model digits_model = load(digits("digits.onnx"));
  const ConvertReport result = convert(digits_model);
  EXPECT_EQ(result.verified(), Verdict::same);
  EXPECT_THAT(result.not_verified(), IsEmpty());
  const ConvertReport without_proofs = convert(digits_model, {.prove = false});
  EXPECT_EQ(without_proofs.verified(), std::nullopt);
  EXPECT_THAT(without_proofs.not_verified(), HasSubstr("ConvertOptions::prove = false"));
  const ConvertReport again = convert(result.model);
  EXPECT_EQ(again.verified(), std::nullopt);
  EXPECT_EQ(again.not_verified(), "nothing was rewritten");
}

TEST(Inspect, ABudgetOfNothingIsRefused) {
  const Model model = load(digits("digits.onnx"));
  InspectOptions options;
  options.judge = Judge::parser;
  options.budget.trial_seconds = -1;
  EXPECT_THAT(message_of([&] { static_cast<void>(inspect(model, options)); }),
              HasSubstr("ProbeBudget::trial_seconds: found -1"));
}

TEST(Inspect, ShapesOfAnInputThatIsNotThereAreNamed) {
  InspectOptions options;
  options.judge = Judge::builder;
  options.shapes = {{"picture", {{1}, {1}, {1}}}};
  EXPECT_THAT(message_of([&] { static_cast<void>(inspect(load(digits("digits.onnx")), options)); }),
              HasSubstr("picture"));
}

TEST(Verify, TheConvertedModelIsTheSame) {
  Told told;
  const Model model = load(digits("digits.onnx"));
  const VerifyResult result =
      verify(model, convert(model, {.check = false}).model, {.data = images(8), .ranges = {}, .watch = told.watch});
  told.expect_complete();
  EXPECT_EQ(result.verdict(), Verdict::same);
  ASSERT_EQ(result.outputs.size(), 2);
  EXPECT_GT(result.outputs[0].compared, 0);
}

TEST(Verify, FindsADifference) {
  const Model model = load(digits("digits.onnx"));
  QuantizeOptions options;
  options.precision = Precision::int8;
  options.data = images();
  VerifyOptions strict;
  strict.data = images(8);
  strict.relative = 1e-6;
  const VerifyResult result = verify(model, quantize(model, options).model, strict);
  EXPECT_EQ(result.verdict(), Verdict::different);
  EXPECT_GT(result.outputs[0].worst.mismatched, 0);
}

TEST(Verify, DataThatFitNeitherModelAreNamed) {
  const Model model = load(digits("digits.onnx"));
  VerifyOptions options;
  options.data = {{"picture", make_tensor({1, 1, 8, 8}, std::vector<float>(64))}};
  const std::string message = message_of([&] { static_cast<void>(verify(model, model, options)); });
  EXPECT_THAT(message, HasSubstr("VerifyOptions::data: neither model has an input 'picture'"));
}

TEST(Verify, OptionsThatMeanNothingAreNamed) {
  const Model model = load(digits("digits.onnx"));
  const auto refused = [&](VerifyOptions options) {
    return message_of([&] { static_cast<void>(verify(model, model, options)); });
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(refused({.relative = -1}), HasSubstr("VerifyOptions::relative: found -1"));
  EXPECT_THAT(refused({.absolute = nan}), HasSubstr("VerifyOptions::absolute: found nan"));
  EXPECT_THAT(refused({.snr_db = nan}), HasSubstr("VerifyOptions::snr_db: found nan"));
  EXPECT_THAT(refused({.relative = 0.1, .snr_db = 20}), HasSubstr("VerifyOptions::snr_db"));
  EXPECT_THAT(refused({.ranges = {{"image", {5, 1}}}}), HasSubstr("VerifyOptions::ranges['image']: found 5 to 1"));
  EXPECT_THAT(refused({.data = images(2), .seeds = 2}), HasSubstr("VerifyOptions::seeds"));
}

TEST(Quantize, Int8SaysWhatBecameOfEachNode) {
  Told told;
  QuantizeOptions options;
  options.precision = Precision::int8;
  options.data = images();
  options.watch = told.watch;
  const QuantizeReport result = quantize(load(digits("digits.onnx")), options);
  told.expect_complete();
  EXPECT_TRUE(result.met());
  EXPECT_TRUE(std::any_of(result.nodes.begin(), result.nodes.end(),
                          [](const QuantizedNode& node) { return node.type == "int8" && node.node.op == "Conv"; }));
  ASSERT_EQ(result.outputs.size(), 2);
  EXPECT_GT(result.outputs[0].snr_db.value_or(0), 20);
}

TEST(Quantize, Int8NeedsData) {
  QuantizeOptions options;
  options.precision = Precision::int8;
  EXPECT_THAT(message_of([&] { static_cast<void>(quantize(load(digits("digits.onnx")), options)); }),
              HasSubstr("QuantizeOptions::data"));
}

TEST(Quantize, F16NeedsNone) {
  QuantizeOptions options;
  const QuantizeReport result = quantize(load(digits("digits.onnx")), options);
  EXPECT_TRUE(result.met());
  EXPECT_TRUE(std::any_of(result.nodes.begin(), result.nodes.end(),
                          [](const QuantizedNode& node) { return node.type == "f16"; }));
}

TEST(Cancel, BeforeAndWithinTheWork) {
  const Model model = load(digits("digits.onnx"));
  Watch before;
  before.cancel.cancel();
  EXPECT_THROW(static_cast<void>(convert(model, {.check = false, .watch = before})), Cancelled);

  Watch within;
  within.progress = [token = within.cancel](double fraction, std::string_view) mutable {
    if (fraction > 0.3) token.cancel();
  };
  EXPECT_THROW(static_cast<void>(convert(model, {.check = false, .watch = within})), Cancelled);
  QuantizeOptions options;
  options.precision = Precision::int8;
  options.data = images();
  options.watch = within;
  EXPECT_THROW(static_cast<void>(quantize(model, options)), Cancelled);
}

TEST(Cancel, WhatIsDoneStaysDone) {
  const Model model = load(digits("digits.onnx"));
  Watch at_the_end;
  at_the_end.progress = [token = at_the_end.cancel](double fraction, std::string_view) mutable {
    if (fraction == 1) token.cancel();
  };
  EXPECT_GT(convert(model, {.check = false, .watch = at_the_end}).model.node_count(), 0);
  EXPECT_TRUE(at_the_end.cancel.is_cancelled());
}

TEST(Cancel, ATokenThatWasMovedFromIsStillTheSame) {
  Watch watch;
  const Watch moved = std::move(watch);
  watch.cancel.cancel();  // NOLINT(bugprone-use-after-move)
  EXPECT_TRUE(moved.cancel.is_cancelled());
}

TEST(Cancel, WhatTheCallbackThrowsReachesTheCaller) {
  Watch watch;
  watch.progress = [](double, std::string_view) { throw std::string("mine"); };
  EXPECT_THROW(static_cast<void>(convert(load(digits("digits.onnx")), {.watch = watch})), std::string);
}

TEST(Cancel, EndsReading) {
  for (const char* file : {"digits.onnx", "digits.pb"}) {
    ImportOptions options;
    options.watch.cancel.cancel();
    EXPECT_THROW(static_cast<void>(load(digits(file), options)), Cancelled) << file;
  }
  std::vector<double> fractions;
  ImportOptions options;
  options.watch.progress = [&, token = options.watch.cancel](double fraction, std::string_view) mutable {
    fractions.push_back(fraction);
    if (fractions.size() == 5) token.cancel();
  };
  EXPECT_THROW(static_cast<void>(load(digits("digits.pb"), options)), Cancelled);
  EXPECT_EQ(fractions.size(), 5) << "the token is looked at before each node";
  EXPECT_TRUE(std::is_sorted(fractions.begin(), fractions.end()));
}

TEST(Cancel, EndsASession) {
  const Model model = load(digits("digits.onnx"));
  SessionOptions options;
  double last = 0;
  options.watch.progress = [&](double fraction, std::string_view) { last = fraction; };
  Session session(model, options);
  EXPECT_EQ(last, 1);
  EXPECT_EQ(session.run(images(1)).size(), 2);
  options.watch.cancel.cancel();
  EXPECT_THROW(static_cast<void>(session.run(images(1))), Cancelled);
  EXPECT_THROW(static_cast<void>(Session(model, options)), Cancelled);
}

TEST(Load, KnowsFormatsByTheEndOfTheName) {
  EXPECT_EQ(format_of("a/b.pb"), Format::tensorflow);
  EXPECT_EQ(format_of("b.pbtxt"), Format::tensorflow);
  EXPECT_EQ(format_of("b.prototxt"), Format::caffe);
  EXPECT_EQ(format_of("b.onnx"), Format::onnx);
  EXPECT_EQ(format_of("b"), Format::onnx);
}

TEST(Settings, AreCalledByTheirFields) {
  EXPECT_THAT(message_of([] {
                static_cast<void>(load(digits("digits.pb"), {.shapes = {{"nothing", {1}}}}));
              }),
              HasSubstr("ImportOptions::shapes: the network has no input 'nothing'"));
  EXPECT_THAT(
      message_of([] {
        const Model model = load(digits("digits.onnx"));
        static_cast<void>(verify(model, model, {.relative = 0.1, .snr_db = 20}));
      }),
      HasSubstr("VerifyOptions::snr_db replaces the tolerance of each element, which VerifyOptions::relative and "
                "VerifyOptions::absolute set\nSet either VerifyOptions::snr_db, or VerifyOptions::relative and "
                "VerifyOptions::absolute"));
}

TEST(Run, GivesEveryOutput) {
  Session session(load(digits("digits.onnx")));
  const Tensors outputs = session.run(images(4));
  EXPECT_THAT(outputs.at("logits").shape, ElementsAre(4, 10));
  EXPECT_EQ(values_of(outputs.at("logits")).size(), 40);
  EXPECT_THAT(session.run(images(1)).at("logits").shape, ElementsAre(1, 10));
}

TEST(Run, ASessionThatWasMovedFromSaysSo) {
  Session session(load(digits("digits.onnx")));
  const Session moved = std::move(session);
  EXPECT_THAT(message_of([&] { static_cast<void>(session.run(images(1))); }),  // NOLINT(bugprone-use-after-move)
              HasSubstr("moved from"));
}

TEST(Run, NamesAWrongInput) {
  Session session(load(digits("digits.onnx")));
  EXPECT_THAT(message_of([&] { static_cast<void>(session.run({})); }), HasSubstr("image"));
  Tensors damaged = images(4);
  damaged.at("image").data.pop_back();
  EXPECT_THAT(message_of([&] { static_cast<void>(session.run(damaged)); }), HasSubstr("input 'image'"));
}

}  // namespace
}  // namespace graft::toolkit

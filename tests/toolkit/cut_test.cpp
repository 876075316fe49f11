// Tests a detector in two halves through libgraft.so.
#include "graft/toolkit/cut.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "graft/toolkit/import.hpp"
#include "graft/toolkit/inspect.hpp"
#include "graft/toolkit/present.hpp"
#include "graft/toolkit/run.hpp"
#include "tests/toolkit/digits.hpp"

namespace graft::toolkit {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

std::filesystem::path detector(const std::string& file) {
  return std::filesystem::path(std::getenv("GRAFT_SOURCE_DIR")) / "examples" / "cut" / file;
}

std::vector<std::string> names_of(const std::vector<Port>& ports) {
  std::vector<std::string> names;
  for (const Port& port : ports) names.push_back(port.name);
  return names;
}

TEST(Cut, TakesTheEndOfADetectorToTheHost) {
  const auto result = cut(load(detector("detector.onnx")), {.inspect = {.judge = Judge::rule}, .plugins = false});
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->tensorrt_is_first);
  EXPECT_THAT(names_of(result->between), UnorderedElementsAre("boxes", "scores"));
  EXPECT_THAT(result->outputs, ElementsAre("detections", "chosen"));
  ASSERT_EQ(result->causes.size(), 1);
  EXPECT_EQ(result->causes[0].node.op, "NonMaxSuppression");
  EXPECT_GT(result->share_in_tensorrt, 0.99);
  ASSERT_EQ(result->tails.size(), 1);
  EXPECT_EQ(result->tails[0].form, DetectionTail::Boxes::center_and_size);
  EXPECT_EQ(result->tails[0].most, 10);
  EXPECT_THAT(result->tails[0].boxes, ElementsAre("boxes"));
  ASSERT_TRUE(result->verified);
  EXPECT_EQ(result->verified->verdict(), Verdict::same);
}

TEST(Cut, ThePairComputesWhatOnnxRuntimeComputedWithTheWhole) {
  const Tensors stored = read_npz(detector("detector.npz"));
  const auto result =
      cut(load(detector("detector.onnx")), {.inspect = {.judge = Judge::rule}, .plugins = false, .verify = false});
  ASSERT_TRUE(result);
  EXPECT_FALSE(result->verified) << "nobody asked";
  EXPECT_THAT(names_of(result->network().inputs()), ElementsAre("image"));
  Session session(result->network());
  const Tensors outputs = session.run({{"image", stored.at("image")}});
  EXPECT_EQ(outputs.at("chosen").data, stored.at("chosen").data);
  const std::vector<float> found = values_of(outputs.at("detections"));
  EXPECT_THAT(found, ::testing::Pointwise(::testing::FloatNear(1e-5F), values_of(stored.at("detections"))));
  EXPECT_THAT(message_of([&] {
                static_cast<void>(session.run({{"picture", stored.at("image")}}));
              }),
              HasSubstr("picture"));
}

TEST(Cut, ASessionOfThePairIsWatched) {
  const Tensors stored = read_npz(detector("detector.npz"));
  const auto result =
      cut(load(detector("detector.onnx")), {.inspect = {.judge = Judge::rule}, .plugins = false, .verify = false});
  ASSERT_TRUE(result);
  SessionOptions options;
  double last = 0;
  options.watch.progress = [&](double fraction, std::string_view) { last = fraction; };
  Session session(result->network(), options);
  EXPECT_EQ(last, 1);
  EXPECT_EQ(session.run({{"image", stored.at("image")}}).size(), 2);
  options.watch.cancel.cancel();
  EXPECT_THROW(static_cast<void>(session.run({{"image", stored.at("image")}})), Cancelled);
  EXPECT_THROW(static_cast<void>(Session(result->network(), options)), Cancelled);
}

TEST(Cut, WhatAPluginRunsStaysInTensorRT) { EXPECT_FALSE(cut(load(detector("detector.onnx")))); }

TEST(Cut, ASuppressionIsAPluginWhereNothingIsCut) {
  const InspectReport result = inspect(load(detector("detector.onnx")), {.judge = Judge::rule});
  const auto node = std::find_if(result.nodes.begin(), result.nodes.end(),
                                 [](const NodeSupport& each) { return each.node.op == "NonMaxSuppression"; });
  ASSERT_NE(node, result.nodes.end());
  EXPECT_THAT(node->reason, HasSubstr("Graft's NonMaxSuppression replaces the node"));
}

TEST(Cut, IsSavedAndRead) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "graft_cut_test";
  std::filesystem::create_directories(folder);
  auto result =
      cut(load(detector("detector.onnx")), {.inspect = {.judge = Judge::rule}, .plugins = false, .verify = false});
  ASSERT_TRUE(result);
  const CutFiles files = save(*result, folder / "small.onnx");
  EXPECT_EQ(files.network.filename(), "small.cut.json");
  const CutNetwork read = load_cut(files.network);
  EXPECT_TRUE(read.tensorrt_is_first);
  EXPECT_EQ(read.outputs, result->outputs);
  EXPECT_EQ(read.host.node_count(), result->host.nodes);
  const Model whole = load(files.network);
  EXPECT_THAT(names_of(whole.outputs()), ElementsAre("detections", "chosen"));
  EXPECT_EQ(verify(load(detector("detector.onnx")), whole).verdict(), Verdict::same);
  std::filesystem::remove_all(folder);
}

TEST(Cut, ThePageAndTheJsonSayWhereAndWhy) {
  const auto result = cut(load(detector("detector.onnx")), {.inspect = {.judge = Judge::rule}, .plugins = false});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->model.node_count(), 15);
  EXPECT_THAT(to_json(*result), AllOf(HasSubstr(R"("schema":"graft.cut/1")"), HasSubstr(R"("verified":"same")"),
                                      HasSubstr(R"("file":"")")));
  EXPECT_THAT(to_page(*result), AllOf(StartsWith("<!"), HasSubstr("detector.onnx"), HasSubstr("Causes of the cut"),
                                      HasSubstr("both halves together equal the whole network, in 3 runs")));
}

TEST(Cut, ThePageSaysWhatWasNotVerified) {
  const auto result =
      cut(load(detector("detector.onnx")), {.inspect = {.judge = Judge::rule}, .plugins = false, .verify = false});
  ASSERT_TRUE(result);
  EXPECT_THAT(to_json(*result), HasSubstr(R"("verified":null)"));
  EXPECT_THAT(to_page(*result), Not(HasSubstr("The halves compared with the whole network")));
}

TEST(Cut, NothingIsCutWhereEverythingRuns) {
  EXPECT_FALSE(cut(load(digits("digits.onnx")), {.inspect = {.judge = Judge::rule}}));
}

}  // namespace
}  // namespace graft::toolkit

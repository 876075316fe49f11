// Tests that an application builds engines with the installed TensorRT.
#include "graft/toolkit/build.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "graft/toolkit/convert.hpp"
#include "graft/toolkit/error.hpp"
#include "graft/toolkit/import.hpp"
#include "tests/toolkit/digits.hpp"

namespace graft::toolkit {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// Returns a file of the running test: tests run at the same time.
std::filesystem::path engine() {
  const std::string test = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  return std::filesystem::path(::testing::TempDir()) / ("toolkit_" + test + ".engine");
}

BuildOptions for_sm89() {
  BuildOptions options;
  options.targets = {"sm89"};
  options.shapes = {{"image", {{1, 1, 8, 8}, {8, 1, 8, 8}, {64, 1, 8, 8}}}};
  return options;
}

bool has_plugin_library() { return std::filesystem::exists(std::getenv("GRAFT_PLUGIN_LIBRARY")); }

TEST(Build, SaysWhichNodesArePluginsAndWhy) {
  if (!has_plugin_library()) GTEST_SKIP() << "this build has no plugin library";
  ConvertOptions always;
  always.plugins = Plugins::always;
  always.check = false;
  const Model model = convert(load(digits("digits.onnx")), always).model;
  BuildOptions options = for_sm89();
  options.targets = {"RTX 5090"};  // every plugin library has code for it
  const BuildReport report = build(model, engine(), options);
  EXPECT_THAT(report.targets, ElementsAre("sm120"));
  EXPECT_EQ(report.bytes, std::filesystem::file_size(engine()));
  EXPECT_THAT(report.network.plugins,
              Contains(AllOf(Field(&PluginLayer::plugin, "L2Normalize"), Field(&PluginLayer::why, Not(IsEmpty())))));
  std::filesystem::remove(engine());
}

TEST(Build, TakesProfilesLimitsFormatsAndFlags) {
  BuildOptions options = for_sm89();
  options.shapes = {};
  options.profiles = {{{"image", {{1, 1, 8, 8}, {1, 1, 8, 8}, {4, 1, 8, 8}}}},
                      {{"image", {{5, 1, 8, 8}, {64, 1, 8, 8}, {128, 1, 8, 8}}}}};
  options.memory.workspace = std::uint64_t{1} << 28;
  options.optimization_level = 1;
  options.formats = {{"image", {.type = "f32"}}, {"logits", {}}};
  options.tf32 = true;
  options.verbosity = ProfilingVerbosity::detailed;
  options.time_limit = 1000;
  options.plugins = false;
  const BuildReport report = build(load(digits("digits.onnx")), engine(), options);
  EXPECT_GT(report.network.layer_count, 0);
  EXPECT_THAT(report.network.plugins, IsEmpty());
  std::filesystem::remove(engine());
}

TEST(Build, AFileMayBeginLikeAnOption) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(::testing::TempDir());
  EXPECT_GT(build(load(digits("digits.onnx")), "-x.engine", for_sm89()).bytes, 0);
  EXPECT_TRUE(std::filesystem::remove("-x.engine"));
  std::filesystem::current_path(before);
}

TEST(Build, RefusesByNameWhatThisTensorRtLacks) {
  const Model model = load(digits("digits.onnx"));
  const auto refused = [&](const std::function<void(BuildOptions&)>& change) {
    BuildOptions options = for_sm89();
    change(options);
    return message_of([&] { static_cast<void>(build(model, engine(), options)); });
  };
  EXPECT_THAT(refused([](BuildOptions& options) { options.dla = Dla{.core = 0, .gpu_fallback = true}; }),
              HasSubstr("BuildOptions::dla.core"));
  EXPECT_THAT(refused([](BuildOptions& options) { options.timing_cache = "times.cache"; }),
              HasSubstr("BuildOptions::timing_cache"));
  EXPECT_THAT(refused([](BuildOptions& options) { options.exclude_lean_runtime = true; }),
              HasSubstr("BuildOptions::exclude_lean_runtime"));
  EXPECT_THAT(refused([](BuildOptions& options) { options.formats = {{"nothing", {}}}; }), HasSubstr("nothing"));
  EXPECT_FALSE(std::filesystem::exists(engine()));
}

TEST(Build, AnErrorOfTensorRtKeepsItsParts) {
  BuildOptions options = for_sm89();
  options.shapes = {};
  try {
    static_cast<void>(build(load(digits("digits.onnx")), engine(), options));
    FAIL() << "the dynamic input has no range";
  } catch (const EngineError& error) {
    const EngineFailure& failure = error.failure();
    EXPECT_EQ(error.kind(), Error::Kind::bad_input);
    EXPECT_EQ(failure.kind, "shapes");
    EXPECT_THAT(failure.message, HasSubstr("without BuildOptions::shapes: image"));
    EXPECT_THAT(failure.next_step, HasSubstr("BuildOptions::shapes image="));
    EXPECT_EQ(error.what(), failure.message + "\n" + failure.next_step);
    EXPECT_THAT(failure.facts, HasSubstr(R"("inputs":["image"])"));
    EXPECT_THAT(failure.library, IsEmpty());
  }
  options = for_sm89();
  options.plugin_libraries = {digits("digits.onnx")};
  try {
    static_cast<void>(build(load(digits("digits.onnx")), engine(), options));
    FAIL() << "a model is no plugin library";
  } catch (const EngineError& error) {
    EXPECT_EQ(error.failure().kind, "plugin_library");
    EXPECT_EQ(error.failure().cause, "not_elf");
    EXPECT_EQ(error.failure().library, digits("digits.onnx").string());
  }
}

}  // namespace
}  // namespace graft::toolkit

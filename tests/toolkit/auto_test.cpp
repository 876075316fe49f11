// Tests that an application builds an engine from a network in one call.
#include "graft/toolkit/auto.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "graft/toolkit/commands.hpp"
#include "graft/toolkit/cpu_engine.hpp"
#include "graft/toolkit/error.hpp"
#include "graft/toolkit/tensor.hpp"
#include "tests/toolkit/digits.hpp"

namespace graft::toolkit {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// A folder that is empty at the beginning of a test.
fs::path empty_folder(const std::string& name) {
  const fs::path folder = fs::path(::testing::TempDir()) / name;
  fs::remove_all(folder);
  fs::create_directory(folder);
  return folder;
}

AutoOptions for_sm120() {
  AutoOptions options;
  options.convert.plugins = Plugins::never;
  options.build.plugins = false;
  options.build.targets = {"sm120"};
  options.build.shapes = {{"image", {{1, 1, 8, 8}, {8, 1, 8, 8}, {64, 1, 8, 8}}}};
  return options;
}

TEST(Auto, CallsTheStepsWithDataInMemoryAndReportsEach) {
  const fs::path folder = empty_folder("auto_steps");
  AutoOptions options = for_sm120();
  options.quantize.emplace().precision = Precision::f16;
  options.verify.engine = CpuEngine::openvino;
  options.data = images();
  std::vector<std::string> calls;
  options.on_step = [&](const AutoReport& /*report*/, const AutoStep& step) {
    calls.push_back(step.name + " " + std::string(to_string(step.state)));
    EXPECT_THAT(step.command, StartsWith("graft " + step.name));
  };
  std::vector<double> fractions;
  options.watch.progress = [&](double fraction, std::string_view /*text*/) { fractions.push_back(fraction); };

  const AutoReport report = run_auto(digits("digits.onnx"), folder / "digits.engine", options);
  save(report);

  EXPECT_TRUE(report.succeeded());
  EXPECT_THAT(calls, ElementsAre("convert not reached", "convert done", "verify not reached", "verify done",
                                 "quantize not reached", "quantize done", "build not reached", "build done"));
  EXPECT_EQ(report.verify->runs, 1U);  // the data, and not synthetic inputs
  EXPECT_TRUE(std::ranges::is_sorted(fractions));
  EXPECT_EQ(fractions.back(), 1);
  EXPECT_THAT(report.steps[1].command, AllOf(HasSubstr("data.npz"), HasSubstr("--engine openvino")));
  for (const char* name : {"converted.onnx", "quantized.onnx", "data.npz", "report.html", "report.json"}) {
    EXPECT_TRUE(fs::exists(folder / "digits.graft" / name)) << name;
  }
  EXPECT_EQ(fs::file_size(folder / "digits.engine"), report.build->bytes);
}

TEST(Auto, ThrowsTheRangesThatAreMissing) {
  const fs::path folder = empty_folder("auto_shapes");
  AutoOptions options = for_sm120();
  options.build.shapes.clear();
  try {
    static_cast<void>(run_auto(digits("digits.onnx"), folder / "digits.engine", options));
    FAIL() << "nothing was thrown";
  } catch (const MissingShapes& missing) {
    EXPECT_THAT(missing.ranges(), ElementsAre(StartsWith("image=1x1x8x8..")));
    EXPECT_THAT(missing.what(), HasSubstr("BuildOptions::shapes"));
  }
  EXPECT_FALSE(fs::exists(folder / "digits.engine"));
}

TEST(Auto, WritesNothingAfterACancelledToken) {
  const fs::path folder = empty_folder("auto_cancelled");
  AutoOptions options = for_sm120();
  options.watch.cancel.cancel();
  EXPECT_THROW(static_cast<void>(run_auto(digits("digits.onnx"), folder / "digits.engine", options)), Cancelled);
  EXPECT_TRUE(fs::is_empty(folder));
}

TEST(Auto, PrintsTheOptionsOfTheComparison) {
  VerifyOptions options;
  options.seeds = 7;
  options.relative = 0.5;
  options.absolute = 1e-3;
  options.ranges["image"] = {0, 255};
  EXPECT_EQ(verify_command({.model = "a.onnx"}, "b.onnx", options),
            "graft verify a.onnx b.onnx --range 'image=0..255' --seeds 7 --rtol 0.5 --atol 0.001");
}

}  // namespace
}  // namespace graft::toolkit

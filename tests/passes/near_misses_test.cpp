// Tests that networks which resemble an operator stay unchanged, and that --explain reports why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "onnx/node_ref.hpp"
#include "onnx/onnx_io.hpp"
#include "passes/pipeline.hpp"
#include "runtime/default_engine.hpp"
#include "tests/passes/models.hpp"
#include "tests/support/folders.hpp"

namespace graft::passes::near_misses_test {
namespace {

using runtime::default_engine;
using test::count_of;

const std::filesystem::path folder = golden_folder() / "near_misses";
const nlohmann::json manifest = nlohmann::json::parse(std::ifstream(folder / "manifest.json"));

TEST(NearMisses, DoNotFuse) {
  std::size_t files = 0;
  for (const auto& entry : manifest.at("near_misses")) {
    const auto name = entry.at("file").get<std::string>();
    SCOPED_TRACE(name + ": " + entry.at("reason").get<std::string>());
    ++files;
    onnx::Model model = onnx::read_onnx(folder / name);
    const std::size_t nodes = model.graph().node_count();
    const RewriteReport report = convert(runtime::default_engine(), model);
    for (const Rewrite& rewrite : report.rewrites) EXPECT_FALSE(rewrite.pass.starts_with("fuse_")) << rewrite.pass;
    EXPECT_TRUE(operators_in(model).empty());
    EXPECT_GE(model.graph().node_count() + 2, nodes);  // only constants may have been folded
    EXPECT_TRUE(report.rejected.empty()) << "the proof had to stop what the pattern should have: "
                                         << report.rejected.front().proof;
  }
  EXPECT_GE(files, 130U);
}

// Passes that never fuse would pass the tests above, so controls must fuse.
TEST(NearMisses, EachOperatorHasControlsThatAreOneConditionAway) {
  std::map<std::string, std::size_t> misses;
  std::map<std::string, std::size_t> controls;
  for (const auto& entry : manifest.at("near_misses")) ++misses[entry.at("operator").get<std::string>()];
  for (const auto& entry : manifest.at("controls")) ++controls[entry.at("operator").get<std::string>()];
  EXPECT_GE(misses.size(), 6U);
  for (const auto& [name, count] : misses) {
    EXPECT_GE(count, 10U) << name;
    EXPECT_GE(controls[name], 1U) << name;
  }
}

TEST(NearMisses, SayWhyNot) {
  std::size_t explained = 0;
  for (const auto& entry : manifest.at("near_misses")) {
    const auto name = entry.at("file").get<std::string>();
    onnx::Model model = onnx::read_onnx(folder / name);
    const RewriteReport report = convert(runtime::default_engine(), model);
    std::string found;
    for (const NearMiss& note : report.near_misses)
      found += note.pattern + " | " + onnx::describe(note.node) + " | " + note.reason + "\n";
    if (std::getenv("GRAFT_SHOW_NEAR_MISSES") != nullptr) std::cout << name << "\n  " << found;
    // A file without words is too far from any pattern for an explanation.
    if (!entry.contains("words")) continue;
    ++explained;
    EXPECT_THAT(found, testing::HasSubstr(entry.at("words").get<std::string>())) << name;
  }
  EXPECT_GE(explained, 120U);
}

TEST(NearMisses, ControlsWrittenTheSameWayDoFuse) {
  std::size_t files = 0;
  for (const auto& entry : manifest.at("controls")) {
    const auto name = entry.at("file").get<std::string>();
    SCOPED_TRACE(name);
    ++files;
    const onnx::Model original = onnx::read_onnx(folder / name);
    onnx::Model model = original.clone();
    const RewriteReport report = convert(runtime::default_engine(), model);
    const auto lowered = entry.value("lowered", std::string());
    const bool was_native = !lowered.empty() && count_of(original, lowered) == 1;
    std::size_t fusions = 0;
    for (const Rewrite& rewrite : report.rewrites) fusions += rewrite.pass.starts_with("fuse_") ? 1 : 0;
    EXPECT_EQ(fusions, was_native ? 0U : 1U);
    if (!lowered.empty()) {
      EXPECT_EQ(count_of(model, lowered), 1U);  // TensorRT has a layer of its own
    }
    EXPECT_EQ(operators_in(model).size(), lowered.empty() ? 1U : 0U);
    const verify::VerifyReport verified = verify::verify_models(runtime::default_engine(), original, model);
    EXPECT_TRUE(verified.equal()) << first_difference(verified);
  }
  EXPECT_GE(files, 10U);
}

}  // namespace
}  // namespace graft::passes::near_misses_test

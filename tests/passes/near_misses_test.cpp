// Networks that look like an operator and are not stay as they are, and --explain can say why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "graph/onnx_io.hpp"
#include "passes/pipeline.hpp"
#include "tests/passes/models.hpp"

namespace graft {
namespace {

const std::filesystem::path folder = std::filesystem::path(GRAFT_GOLDEN_DIR) / "near_misses";

const nlohmann::json& manifest() {
  static const nlohmann::json parsed = [] {
    std::ifstream file(folder / "manifest.json");
    return nlohmann::json::parse(file);
  }();
  return parsed;
}

/// Words that the reason has to contain. Files that are not here match too little of any pattern to be worth a word.
const std::map<std::string, std::string>& expected_reasons() {
  static const std::map<std::string, std::string> all = {};
  return all;
}

TEST(NearMisses, DoNotFuse) {
  std::size_t files = 0;
  for (const auto& entry : manifest().at("near_misses")) {
    const auto name = entry.at("file").get<std::string>();
    SCOPED_TRACE(name + ": " + entry.at("reason").get<std::string>());
    ++files;
    Model model = read_onnx(folder / name);
    const std::size_t nodes = model.graph().node_count();
    const ConvertReport report = convert(model);
    EXPECT_EQ(report.count("fuse_l2_normalize") + report.count("fuse_leaky_relu"), 0U);
    EXPECT_TRUE(operators_in(model).empty());
    EXPECT_GE(model.graph().node_count() + 2, nodes);  // constants may have been folded, no more
    EXPECT_TRUE(report.undone.empty()) << "the proof had to stop what the pattern should have: " << report.undone.front().proof;
  }
  EXPECT_GE(files, 20U);
}

TEST(NearMisses, SayWhyNot) {
  for (const auto& entry : manifest().at("near_misses")) {
    const auto name = entry.at("file").get<std::string>();
    Model model = read_onnx(folder / name);
    const ConvertReport report = convert(model);
    std::string found;
    for (const NearMissNote& note : report.near_misses) found += note.pattern + " | " + note.node + " | " + note.reason + "\n";
    if (std::getenv("GRAFT_SHOW_NEAR_MISSES") != nullptr) std::cout << name << "\n  " << found;
    const auto expected = expected_reasons().find(name);
    if (expected == expected_reasons().end()) continue;
    EXPECT_THAT(found, testing::HasSubstr(expected->second)) << name;
  }
}

TEST(NearMisses, ControlsWrittenTheSameWayDoFuse) {
  std::size_t files = 0;
  for (const auto& entry : manifest().at("controls")) {
    const auto name = entry.at("file").get<std::string>();
    SCOPED_TRACE(name);
    ++files;
    const Model original = read_onnx(folder / name);
    Model model = original.clone();
    const ConvertReport report = convert(model);
    const bool is_leaky = entry.at("operator") == "LeakyReLU";
    const bool was_native = count_of(original, "LeakyRelu") == 1;
    EXPECT_EQ(report.count(is_leaky ? "fuse_leaky_relu" : "fuse_l2_normalize"), was_native ? 0U : 1U);
    EXPECT_EQ(count_of(model, "LeakyRelu"), is_leaky ? 1U : 0U);
    EXPECT_EQ(operators_in(model).size(), is_leaky ? 0U : 1U);
    const VerifyReport verified = verify_models(original, model);
    EXPECT_TRUE(verified.equal()) << first_difference(verified);
  }
  EXPECT_GE(files, 10U);
}

}  // namespace
}  // namespace graft

// Tests a canary of the digits network through libgraft.so.
#include "graft/toolkit/canary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "graft/toolkit/import.hpp"
#include "graft/toolkit/progress.hpp"
#include "graft/toolkit/run.hpp"
#include "tests/toolkit/digits.hpp"

namespace graft::toolkit {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

class Canary : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::path(::testing::TempDir()) / "canary.XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
};

TEST_F(Canary, HasWhatASessionGives) {
  CanaryOptions options;
  options.data = images(8);
  const Model model = load(digits("digits.onnx"));
  const CanaryResult result = write_canary(model, folder_ / "canary", options);
  EXPECT_THAT(result.files, IsSupersetOf({"run_canary.py", "canary.json", "model.onnx", "inputs_0.npz"}));
  ASSERT_FALSE(result.tensors.empty());
  EXPECT_TRUE(result.tensors.back().is_output);
  const std::string& output = result.tensors.back().tensor.name;
  const Tensor given = read_npz(folder_ / "canary" / "inputs_0.npz").at("image");
  EXPECT_EQ(given.data, options.data.at("image").data);
  const std::vector<float> expected = values_of(read_npz(folder_ / "canary" / "expected_0.npz").at(output));
  const std::vector<float> found = values_of(Session(model).run(options.data).at(output));
  ASSERT_EQ(expected.size(), found.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(expected[i], found[i], 1e-5);
}

TEST_F(Canary, NamesTheOptionThatDoesNotFit) {
  const Model model = load(digits("digits.onnx"));
  CanaryOptions options;
  options.seeds = 0;
  EXPECT_THAT(message_of([&] { static_cast<void>(write_canary(model, folder_ / "canary", options)); }),
              HasSubstr("CanaryOptions::seeds"));
  options.seeds = 1;
  options.data = {{"picture", images(1).at("image")}};
  EXPECT_THAT(message_of([&] { static_cast<void>(write_canary(model, folder_ / "canary", options)); }),
              HasSubstr("CanaryOptions::data"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(Canary, LeavesNothingWhereItIsCancelled) {
  CanaryOptions options;
  options.watch.progress = [token = options.watch.cancel](double /*fraction*/, std::string_view /*text*/) mutable {
    token.cancel();
  };
  EXPECT_THROW(static_cast<void>(write_canary(load(digits("digits.onnx")), folder_ / "canary", options)), Cancelled);
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

}  // namespace
}  // namespace graft::toolkit

// Tests trtexec's names of build's options.
#include "cli/trtexec_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "graft/error.hpp"

namespace graft::cli {
namespace {

std::string translated(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(translate_trtexec(words).words, " "));
}

std::string refusal(const std::vector<std::string>& words) {
  try {
    return "accepted: " + translated(words);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::bad_input);
    return error.what();
  }
}

TEST(TranslateTrtexec, options_of_graft_stay_as_they_are) {
  const std::vector<std::string> words{
      "m.onnx", "-o",        "m.engine", "--shapes",  "x=1x3",       "--shapes=y:0=1x3..2x3..4x3",
      "-v",     "--profile", "x=1",      "--profile", "a:0=1..2..3", "--refit",
      "--json", "--device",  "0"};
  const TrtexecTranslation same = translate_trtexec(words);
  EXPECT_EQ(same.words, words);
  EXPECT_TRUE(same.notes.empty());
}

TEST(TranslateTrtexec, values_follow_an_equals_sign_or_a_space) {
  EXPECT_EQ(translated({"--onnx=m.onnx", "--saveEngine", "e"}), "m.onnx --output e");
  EXPECT_EQ(translated({"--onnx=-m.onnx", "--saveEngine", "e"}), "./-m.onnx --output e");
  EXPECT_EQ(translated({"--onnx", "-m.onnx", "--saveEngine", "e"}), "./-m.onnx --output e");
  EXPECT_EQ(translated({"--timingCacheFile=t", "--useDLACore=1", "--allowGPUFallback"}),
            "--timing-cache t --dla 1 --gpu-fallback");
  EXPECT_EQ(translated({"--computeCapabilities=8.9,12.0"}), "--target 89,120");
  EXPECT_NE(refusal({"--onnx"}).find("--onnx=VALUE"), std::string::npos);
}

TEST(TranslateTrtexec, flags) {
  EXPECT_EQ(translated({"--vc", "--excludeLeanRuntime", "--allowWeightStreaming"}),
            "--version-compatible --exclude-lean-runtime --weight-streaming");
  EXPECT_EQ(translated({"--stripAllWeights"}), "--strip-weights --refit");
  EXPECT_EQ(translated({"--setPluginsToSerialize=a.so", "--setPluginsToSerialize=b.so"}),
            "--plugin-lib a.so --embed-plugins --plugin-lib b.so");
}

TEST(TranslateTrtexec, memory_is_in_mebibytes_without_a_unit) {
  EXPECT_EQ(translated({"--memPoolSize=workspace:512,dlaSRAM:1024K"}), "--memory workspace:512MiB,dlaSRAM:1024K");
  EXPECT_EQ(translated({"--workspace=64"}), "--memory workspace=64MiB");
}

TEST(TranslateTrtexec, one_profile_is_shapes) {
  EXPECT_EQ(translated({"--minShapes=x:1x3,'in:0':1", "--optShapes=x:2x3,'in:0':2", "--maxShapes=x:4x3,'in:0':3"}),
            "--shapes x=1x3..2x3..4x3 --shapes in:0=1..2..3");
  EXPECT_EQ(translated({"--shapes=x:1x3,y:2"}), "--shapes x=1x3 --shapes y=2");
}

TEST(TranslateTrtexec, what_is_not_given_of_the_three_is_the_usual_shape) {
  EXPECT_EQ(translated({"--optShapes=x:2x3"}), "--shapes x=2x3..2x3..2x3");
  EXPECT_EQ(translated({"--minShapes=x:1", "--maxShapes=x:4"}), "--shapes x=1..4..4");
}

TEST(TranslateTrtexec, numbered_profiles_in_the_order_of_their_numbers) {
  EXPECT_EQ(translated({"--profile=1", "--optShapes=x:8", "--profile=0", "--optShapes=x:1,y:2", "--profile=1",
                        "--maxShapes=x:9"}),
            "--profile x=1..1..1,y=2..2..2 --profile x=8..8..9");
}

TEST(TranslateTrtexec, what_is_so_anyway_is_left_out_with_a_note) {
  const TrtexecTranslation noted = translate_trtexec({"m", "--noTF32", "--stronglyTyped"});
  EXPECT_EQ(noted.words, (std::vector<std::string>{"m"}));
  ASSERT_EQ(noted.notes.size(), 2U);
  EXPECT_NE(noted.notes.front().find("--tf32"), std::string::npos);
}

TEST(TranslateTrtexec, the_note_is_the_command_in_grafts_words) {
  EXPECT_EQ(translate_trtexec({"--onnx=m"}).notes,
            (std::vector<std::string>{"trtexec's options, translated to Graft's: graft build m"}));
  EXPECT_EQ(
      translate_trtexec({"--onnx=my model.onnx", "--saveEngine=m"}).notes,
      (std::vector<std::string>{"trtexec's options, translated to Graft's: graft build 'my model.onnx' --output m"}));
}

TEST(TranslateTrtexec, a_precision_is_in_the_model) {
  for (const char* option : {"--fp16", "--bf16", "--int8", "--fp8", "--best"}) {
    EXPECT_NE(refusal({option}).find("strongly typed"), std::string::npos) << option;
    EXPECT_NE(refusal({option}).find("graft quantize"), std::string::npos) << option;
  }
}

TEST(TranslateTrtexec, what_runs_an_engine_is_refused) {
  EXPECT_NE(refusal({"--loadEngine=e"}).find("does not run it"), std::string::npos);
  EXPECT_NE(refusal({"--iterations=10"}).find("does not run it"), std::string::npos);
}

TEST(TranslateTrtexec, nothing_is_translated_after_two_dashes) { EXPECT_EQ(translated({"--", "--fp16"}), "-- --fp16"); }

}  // namespace
}  // namespace graft::cli

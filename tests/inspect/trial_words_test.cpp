// Tests the messages about TensorRT's results.
#include "inspect/trial_words.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace graft::inspect {
namespace {

using nlohmann::json;

json error_message(const char* text) { return {{"severity", "error"}, {"message", text}}; }

TEST(TrialWords, a_process_that_ended_or_hangs) {
  EXPECT_EQ(words_of({.outcome = Outcome::crashed, .answer = {{"return_code", 3}}}),
            "the process ended with exit code 3");
  EXPECT_EQ(words_of({.outcome = Outcome::hung, .answer = {{"limit", 2.0}, {"last_messages", {"tuning..."}}}}),
            "no answer within 2 s; its last message: tuning");
}

TEST(TrialWords, output_of_plugins_is_told_apart) {
  const json answer = {{"messages", {error_message("no plugin")}}, {"output", {"limit is negative"}}};
  EXPECT_EQ(words_of({.outcome = Outcome::failed, .answer = answer}), "no plugin; printed: limit is negative");
}

TEST(TrialWords, sizes_that_contradict_each_other) {
  const json answer = {{"messages", {error_message("the profile is not self-consistent")}}};
  EXPECT_TRUE(is_about_sizes({.outcome = Outcome::failed, .answer = answer}));
  EXPECT_FALSE(is_about_sizes({.outcome = Outcome::refused, .answer = answer}));
}

TEST(TrialWords, a_name_is_a_word) {
  EXPECT_TRUE(names("layer conv_1 failed", "conv_1"));
  EXPECT_TRUE(names("layer conv_12 failed", "conv")) << "TensorRT's own number";
  EXPECT_FALSE(names("layer conv1 failed", "conv"));
  EXPECT_FALSE(names("layer my_conv failed", "conv"));
}

}  // namespace
}  // namespace graft::inspect

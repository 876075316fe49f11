// Tests the suggestions of "did you mean ...?".
#include "core/suggest.hpp"

#include <gtest/gtest.h>

namespace graft {
namespace {

TEST(Nearest, finds_a_slip) {
  EXPECT_EQ(nearest("bulid", {"build", "run", "verify"}), "build");
  EXPECT_EQ(nearest("--tagret", {"--target", "--tensorrt"}), "--target");
  EXPECT_EQ(nearest("l2normalize", {"LeakyReLU", "L2Normalize"}), "L2Normalize");
}

TEST(Nearest, suggests_nothing_far_away) {
  EXPECT_EQ(nearest("quantum", {"build", "run", "verify"}), std::nullopt);
  EXPECT_EQ(nearest("x", {"run"}), std::nullopt);
}

/// The table of edit distances would have 10^10 elements.
TEST(Nearest, of_long_words_is_not_looked_for) {
  const std::string word(100'000, 'a');
  EXPECT_EQ(nearest(word, {std::string(100'000, 'b'), word.substr(1), "run"}), std::nullopt);
  EXPECT_EQ(nearest(std::string(128, 'a'), {std::string(127, 'a')}), std::string(127, 'a'));
}

}  // namespace
}  // namespace graft

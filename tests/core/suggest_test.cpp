// "Did you mean".
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

}  // namespace
}  // namespace graft

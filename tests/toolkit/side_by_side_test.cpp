// Tests two functions that run at the same time: each ends where the other one fails, or where the caller cancels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <thread>

#include "toolkit/work.hpp"

namespace graft::toolkit {
namespace {

using ::testing::ThrowsMessage;

/// Waits for the token as a long computation does, and throws.
void wait_until_cancelled(const CancelToken& token) {
  while (!token.is_cancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  throw Cancelled();
}

TEST(SideBySide, both_end) {
  int ended = 0;
  bool ran_here = false;
  run_side_by_side([&](const CancelToken& /*cancel*/) { ++ended; }, [&] { ran_here = true; }, {}, {});
  EXPECT_EQ(ended, 1);
  EXPECT_TRUE(ran_here);
}

TEST(SideBySide, a_failure_here_ends_the_other_function) {
  EXPECT_THAT([] { run_side_by_side(wait_until_cancelled, [] { throw std::runtime_error("here"); }, {}, {}); },
              ThrowsMessage<std::runtime_error>("here"));
}

TEST(SideBySide, a_failure_aside_ends_the_function_here_and_is_thrown) {
  const CancelToken stop_here;
  EXPECT_THAT(
      [&] {
        run_side_by_side([](const CancelToken& /*cancel*/) { throw std::runtime_error("aside"); },
                         [&] { wait_until_cancelled(stop_here); }, stop_here, {});
      },
      ThrowsMessage<std::runtime_error>("aside"));
}

TEST(SideBySide, the_caller_cancels_both) {
  CancelToken outer;
  outer.cancel();
  EXPECT_THROW(run_side_by_side(
                   wait_until_cancelled, [&] { wait_until_cancelled(outer); }, {}, outer),
               Cancelled);
  EXPECT_THROW(run_side_by_side(
                   wait_until_cancelled, [] {}, {}, outer),
               Cancelled)
      << "after the end of one";
}

}  // namespace
}  // namespace graft::toolkit

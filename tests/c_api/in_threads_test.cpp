// Tests loops on several threads: every element is visited once, and an exception of a piece reaches the caller.
#include "c_api/in_threads.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <stdexcept>
#include <string>

namespace graft {
namespace {

TEST(InThreads, VisitsEveryElementOnce) {
  for (const std::int32_t threads : {-1, 0, 1, 2, 3, 7, 200}) {
    std::vector<std::atomic<int>> visits(101);
    in_threads(101, threads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
    });
    for (const std::atomic<int>& each : visits) EXPECT_EQ(each, 1) << threads << " threads";
  }
}

TEST(InThreads, TheExceptionOfAThreadReachesTheCallerAfterAllHaveEnded) {
  std::atomic<int> ended = 0;
  const auto body = [&](std::int64_t begin, std::int64_t /*end*/) {
    if (begin >= 50) throw std::bad_alloc();
    ++ended;
  };
  EXPECT_THROW(in_threads(100, 4, body), std::bad_alloc);
  EXPECT_EQ(ended, 2);
}

TEST(InThreads, OfSeveralExceptionsTheFirstPiecesIsThrown) {
  try {
    in_threads(4, 4, [](std::int64_t begin, std::int64_t /*end*/) { throw std::runtime_error(std::to_string(begin)); });
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "0");
  }
}

}  // namespace
}  // namespace graft

// Tests the search for the smallest failing part with known failures.
#include "engine/smallest_failing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace graft::engine {
namespace {

using Part = std::vector<std::size_t>;

struct Search {
  Part found;
  std::size_t trials = 0;
};

/// Searches among `count` nodes, where exactly the parts with all of `culprits` fail.
Search search(std::size_t count, const std::set<std::size_t>& culprits) {
  Search search;
  search.found = smallest_failing(count, [&](const Part& part) {
    ++search.trials;
    return std::all_of(culprits.begin(), culprits.end(),
                       [&](std::size_t item) { return std::find(part.begin(), part.end(), item) != part.end(); });
  });
  return search;
}

TEST(SmallestFailing, one_item_wherever_it_is) {
  for (const std::size_t count : {1, 2, 3, 200}) {
    for (std::size_t item = 0; item < count; ++item) EXPECT_EQ(search(count, {item}).found, Part{item}) << count;
  }
}

TEST(SmallestFailing, items_that_fail_together) {
  EXPECT_EQ(search(200, {17, 18}).found, (Part{17, 18}));
  EXPECT_EQ(search(200, {17, 19, 25}).found, (Part{17, 19, 25}));
  EXPECT_EQ(search(2, {0, 1}).found, (Part{0, 1}));
}

TEST(SmallestFailing, takes_few_trials) {
  EXPECT_LE(search(1000, {500}).trials, 11U);
  EXPECT_LE(search(1000, {500, 501}).trials, 30U);
}

TEST(SmallestFailing, of_several_failures_the_first_is_found) {
  const Part found = smallest_failing(100, [](const Part& part) {
    return std::any_of(part.begin(), part.end(), [](std::size_t i) { return i == 20 || i == 70; });
  });
  EXPECT_EQ(found, Part{20});
}

TEST(SmallestFailing, a_failure_that_does_not_repeat_leaves_what_failed) {
  EXPECT_EQ(smallest_failing(4, [](const Part&) { return false; }).size(), 4U);
}

}  // namespace
}  // namespace graft::engine

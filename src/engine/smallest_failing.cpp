// Shortens the end of the sequence by bisection, then its beginning, then leaves out single items.
#include "engine/smallest_failing.hpp"

#include <numeric>

namespace graft::engine {
namespace {

std::vector<std::size_t> range(std::size_t begin, std::size_t end) {
  std::vector<std::size_t> items(end - begin);
  std::iota(items.begin(), items.end(), begin);
  return items;
}

}  // namespace

std::vector<std::size_t> smallest_failing(std::size_t count,
                                          const std::function<bool(const std::vector<std::size_t>& part)>& fails,
                                          std::size_t max_single) {
  if (count <= 1) return range(0, count);
  // Invariant: [0, end) fails, [0, passing) does not.
  std::size_t end = count;
  for (std::size_t passing = 0; end - passing > 1;) {
    const std::size_t middle = passing + (end - passing) / 2;
    if (fails(range(0, middle))) {
      end = middle;
    } else {
      passing = middle;
    }
  }
  if (end == 1 || fails({end - 1})) return {end - 1};
  // Invariant: [begin, end) fails, [passing, end) does not.
  std::size_t begin = 0;
  for (std::size_t passing = end - 1; passing - begin > 1;) {
    const std::size_t middle = begin + (passing - begin) / 2;
    if (fails(range(middle, end))) {
      begin = middle;
    } else {
      passing = middle;
    }
  }
  std::vector<std::size_t> part = range(begin, end);
  for (std::size_t i = 0, tried = 0; i + 1 < part.size() && tried < max_single; ++tried) {
    std::vector<std::size_t> without = part;
    without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
    if (fails(without)) {
      part = std::move(without);
    } else {
      ++i;
    }
  }
  return part;
}

}  // namespace graft::engine

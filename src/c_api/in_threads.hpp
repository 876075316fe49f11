// Runs a loop on several threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

namespace graft {

/// Divides the indices 0 to `count` - 1 into one contiguous range for each thread (at least one range, at most `count`)
/// and calls `body(begin, end)` for each range, in parallel; `end` is excluded. After all calls have ended, rethrows
/// the exception of the first range that threw.
template <class Body>
void in_threads(std::int64_t count, std::int32_t threads, const Body& body) {
  const std::int64_t pieces = std::clamp<std::int64_t>(threads, 1, std::max<std::int64_t>(count, 1));
  std::vector<std::exception_ptr> thrown(static_cast<std::size_t>(pieces));
  const auto run = [&](std::int64_t piece) noexcept {
    try {
      body(count * piece / pieces, count * (piece + 1) / pieces);
    } catch (...) {
      thrown[static_cast<std::size_t>(piece)] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> running;
    for (std::int64_t i = 1; i < pieces; ++i) running.emplace_back(run, i);
    run(0);
  }
  for (const std::exception_ptr& each : thrown) {
    if (each) std::rethrow_exception(each);
  }
}

}  // namespace graft

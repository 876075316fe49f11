// Finds a small part of a sequence that still fails, by trying parts of the sequence.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace graft::engine {

/// Returns a minimal subset of the items 0 to `count` - 1, in ascending order, for which `fails` returns true; `count`
/// items together must fail, and later items depend on earlier ones. Leaving out any one item makes the subset pass,
/// unless `max_single` trials of leaving one out were too few to verify it. Bisection takes about 2 log2(count) trials:
/// it shortens the list at the end, tries the last remaining item alone, and then shortens the list at the beginning.
[[nodiscard]] std::vector<std::size_t> smallest_failing(
    std::size_t count, const std::function<bool(const std::vector<std::size_t>& part)>& fails,
    std::size_t max_single = 16);

}  // namespace graft::engine

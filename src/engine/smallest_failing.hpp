// Finds a small part of a sequence that still fails, by trying parts of the sequence.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace graft::engine {

/// Returns the indices of a part of `count` items that fails, where later items depend on earlier ones. The part no
/// longer fails if any one of its items is left out, unless `max_single` trials of leaving one out were too few to show
/// it. The caller has checked that all items together fail. Bisection takes about 2 log2(count) trials: it shortens the
/// end, tries the last item of the remaining part alone, and then shortens the beginning.
[[nodiscard]] std::vector<std::size_t> smallest_failing(
    std::size_t count, const std::function<bool(const std::vector<std::size_t>& part)>& fails,
    std::size_t max_single = 16);

}  // namespace graft::engine

// The smallest part of a sequence that still fails, found by trying parts of it.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace graft::engine {

/// Of `count` items in an order in which later ones depend on earlier ones: the indices of a part that fails, and fails
/// no more without any one of them, as far as `max_single` trials of leaving one out reach. All together are known to
/// fail. About 2 log2(count) trials, of which the first is the last item of the shortest failing beginning by itself.
[[nodiscard]] std::vector<std::size_t> smallest_failing(
    std::size_t count, const std::function<bool(const std::vector<std::size_t>& part)>& fails,
    std::size_t max_single = 16);

}  // namespace graft::engine

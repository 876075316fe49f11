// Looks up the scores at both indices.
#include "verify/choices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "graph/schema.hpp"

namespace graft {

std::optional<IndexChoice> choice_of(const Value& value) {
  const Node* node = value.producer;
  // A view keeps the place of each index, by which its scores are found.
  const auto keeps_places = [](const Node& n) { return has_trait(n, trait::view) || n.is("Cast"); };
  while (node != nullptr && keeps_places(*node)) node = node->input(0) == nullptr ? nullptr : node->input(0)->producer;
  const bool chooses = node != nullptr && (node->is("ArgMax") || node->is("ArgMin")) && node->input(0) != nullptr;
  if (!chooses) return std::nullopt;
  return IndexChoice{.scores = node->input(0), .axis = node->int_or("axis", 0)};
}

std::optional<std::string> judge_choice(const IndexChoice& choice, const TensorData& scores,
                                        const TensorData& reference, const TensorData& candidate, double share,
                                        Difference& difference) {
  const auto rank = static_cast<std::int64_t>(scores.dims.size());
  const std::int64_t axis = choice.axis < 0 ? choice.axis + rank : choice.axis;
  const auto numbers = scores.numbers();
  const auto expected = reference.ints();
  const auto found = candidate.ints();
  if (axis < 0 || axis >= rank || !numbers || !expected || !found) return std::nullopt;
  const std::int64_t size = scores.dims[static_cast<std::size_t>(axis)];
  const bool fits =
      reference.dims == candidate.dims && size > 0 && std::ssize(*numbers) == std::ssize(*expected) * size;
  if (!fits) return std::nullopt;
  std::int64_t inner = 1;
  for (std::int64_t i = axis + 1; i < rank; ++i) inner *= scores.dims[static_cast<std::size_t>(i)];

  std::int64_t excused = 0;
  double widest = 0;
  double widest_share = 0;
  for (std::int64_t i = 0; i < std::ssize(*expected); ++i) {
    const std::int64_t left = (*expected)[static_cast<std::size_t>(i)];
    const std::int64_t right = (*found)[static_cast<std::size_t>(i)];
    if (left == right) continue;
    if (std::min(left, right) < 0 || std::max(left, right) >= size) return std::nullopt;
    const auto score = [&](std::int64_t index) {
      return (*numbers)[static_cast<std::size_t>((i / inner * size + index) * inner + i % inner)];
    };
    double largest = 0;
    for (std::int64_t index = 0; index < size; ++index) largest = std::max(largest, std::abs(score(index)));
    const double gap = std::abs(score(left) - score(right));
    if (!std::isfinite(gap) || !std::isfinite(largest)) return std::nullopt;
    if (gap <= 2 * share * largest) ++excused;
    const double gap_share = gap == 0 ? 0 : gap / largest;
    if (gap_share < widest_share) continue;
    widest = gap;
    widest_share = gap_share;
  }
  difference.mismatched -= excused;
  difference.within_noise += excused;
  difference.excess = widest_share / (2 * share);
  constexpr double percent = 100;
  return fmt::format(
      "an index: at the candidate's, the scores of the reference are up to {:.2g} from the best, {:.2g} % of the "
      "largest of "
      "their row; allowed is {:.2g} %",
      widest, percent * widest_share, percent * 2 * share);
}

}  // namespace graft

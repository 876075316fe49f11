// Reference kernel of LargestK.
#include <algorithm>
#include <numeric>

#include "ops/largest_k/plan.hpp"
#include "ops/reference.hpp"

namespace graft::ops {
namespace {

/// Returns whether a < b, where NaN is larger than every number.
template <class Element>
bool is_less(Element a, Element b) {
  if (a != a) return false;
  return b != b || a < b;
}

}  // namespace

Status run(const LargestK& op, const Problem& problem, const Buffers& buffers, const CpuContext& context) {
  return dispatch_any(problem.inputs[0].dtype, [&](auto element) -> Status {
    using Element = decltype(element);
    const LargestRows rows(op, problem);
    const auto* x = static_cast<const Element*>(buffers.inputs[0]);
    auto* values = static_cast<Element*>(buffers.outputs[0]);
    auto* indices = static_cast<std::int64_t*>(buffers.outputs[1]);
    context.parallel_for(rows.rows, [&](std::int64_t begin, std::int64_t end) {
      std::vector<std::int64_t> places(static_cast<std::size_t>(rows.length));
      for (std::int64_t row = begin; row < end; ++row) {
        const Element* from = x + row / rows.stride * rows.length * rows.stride + row % rows.stride;
        const std::int64_t to = row / rows.stride * rows.kept * rows.stride + row % rows.stride;
        const auto is_before = [&](std::int64_t a, std::int64_t b) {
          const Element& of_a = from[a * rows.stride];
          const Element& of_b = from[b * rows.stride];
          if (is_less(of_a, of_b)) return !op.largest;
          if (is_less(of_b, of_a)) return op.largest;
          return a < b;
        };
        std::iota(places.begin(), places.end(), 0);
        std::partial_sort(places.begin(), places.begin() + rows.kept, places.end(), is_before);
        for (std::int64_t i = 0; i < rows.kept; ++i) {
          const std::int64_t place = places[static_cast<std::size_t>(i)];
          values[to + i * rows.stride] = from[place * rows.stride];
          indices[to + i * rows.stride] = place;
        }
      }
    });
    return {};
  });
}

}  // namespace graft::ops

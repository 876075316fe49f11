// Reference kernel of AffineSampling, in double.
#include <algorithm>
#include <array>

#include "affine_sampling/affine_sampling.hpp"
#include "ops/reference.hpp"

graft::Status my::run(const AffineSampling& op, const graft::Problem& problem, const graft::Buffers& buffers,
                      const graft::CpuContext& context) {
  return graft::ops::dispatch(problem.inputs[0].dtype, [&](auto element) -> graft::Status {
    using Element = decltype(element);
    const auto* theta = static_cast<const Element*>(buffers.inputs[0]);
    auto* grid = static_cast<Element*>(buffers.outputs[0]);
    const graft::Extents& sizes = problem.outputs[0].extents;
    const int axes = sizes.rank() - 2;
    context.parallel_for(sizes.element_count() / axes, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t point = begin; point < end; ++point) {
        std::array<double, 4> place{};  // x first, then y and z, and a 1
        std::int64_t rest = point;
        for (int axis = axes; axis > 0; --axis) {
          const std::int64_t size = sizes[axis];
          const std::int64_t divisor = op.align_corners ? std::max<std::int64_t>(size - 1, 1) : size;
          const std::int64_t centered = 2 * (rest % size) - (size - 1);
          place[static_cast<std::size_t>(axes - axis)] = static_cast<double>(centered) / static_cast<double>(divisor);
          rest /= size;
        }
        place[static_cast<std::size_t>(axes)] = 1;
        for (int row = 0; row < axes; ++row) {
          double sum = 0;
          for (int column = 0; column <= axes; ++column) {
            const double factor = graft::ops::load(theta[(rest * axes + row) * (axes + 1) + column], 1);
            sum += factor * place[static_cast<std::size_t>(column)];
          }
          grid[point * axes + row] = graft::ops::store<Element>(sum, 1);
        }
      }
    });
    return {};
  });
}

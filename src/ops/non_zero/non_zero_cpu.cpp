// Reference kernel of NonZero.
#include "ops/non_zero/non_zero.hpp"
#include "ops/reference.hpp"

namespace graft::ops {

Status run(const NonZero& /*op*/, const Problem& problem, const Buffers& buffers, const CpuContext& /*context*/) {
  return dispatch_any(problem.inputs[0].dtype, [&](auto element) -> Status {
    using Element = decltype(element);
    const Extents& sizes = problem.inputs[0].extents;
    const auto* x = static_cast<const Element*>(buffers.inputs[0]);
    const std::int64_t elements = sizes.element_count();
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < elements; ++i) count += x[i] != Element(0) ? 1 : 0;
    auto* y = static_cast<std::int64_t*>(buffers.outputs[0]);
    std::int64_t column = 0;
    for (std::int64_t i = 0; i < elements; ++i) {
      if (!(x[i] != Element(0))) continue;
      std::int64_t rest = i;
      for (int axis = sizes.rank() - 1; axis >= 0; --axis) {
        y[axis * count + column] = rest % sizes[axis];
        rest /= sizes[axis];
      }
      ++column;
    }
    store_size(problem.outputs[1].dtype, count, buffers.outputs[1]);
    return {};
  });
}

}  // namespace graft::ops

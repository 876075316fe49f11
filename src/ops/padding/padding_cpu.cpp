// Reference kernel of Padding.
#include <algorithm>

#include "ops/padding/padding.hpp"
#include "ops/reference.hpp"

namespace graft::ops {
namespace {

/// Returns the index of the element that `mode` copies to position `i` of an axis of `size` elements, as in numpy.pad,
/// or -1 for the constant. `i` may lie outside of 0 to size - 1.
std::int64_t source_index(PaddingMode mode, std::int64_t i, std::int64_t size) {
  const auto modulo = [](std::int64_t a, std::int64_t b) { return (a % b + b) % b; };
  switch (mode) {
    case PaddingMode::constant: return i >= 0 && i < size ? i : -1;
    case PaddingMode::edge: return std::clamp<std::int64_t>(i, 0, size - 1);
    case PaddingMode::wrap: return modulo(i, size);
    case PaddingMode::symmetric: {
      const std::int64_t turn = modulo(i, 2 * size);
      return turn < size ? turn : 2 * size - 1 - turn;
    }
    case PaddingMode::reflect: {
      if (size == 1) return 0;
      const std::int64_t turn = modulo(i, 2 * size - 2);
      return turn < size ? turn : 2 * size - 2 - turn;
    }
  }
  return -1;
}

/// Returns the index in x that element `element` of y copies, or -1 for the constant.
std::int64_t source_of(const Padding& op, std::int64_t element, const Extents& x, const Extents& y) {
  std::int64_t source = 0;
  std::int64_t stride = 1;
  for (int axis = x.rank() - 1; axis >= 0; --axis) {
    const std::int64_t index = source_index(op.mode, element % y[axis] - op.begin(axis), x[axis]);
    if (index < 0) return -1;
    source += index * stride;
    stride *= x[axis];
    element /= y[axis];
  }
  return source;
}

}  // namespace

Status run(const Padding& op, const Problem& problem, const Buffers& buffers, const CpuContext& context) {
  const Extents& x_extents = problem.inputs[0].extents;
  const Extents& y_extents = problem.outputs[0].extents;
  return dispatch_and_f8(problem.inputs[0].dtype, [&](auto element) -> Status {
    using Element = decltype(element);
    const auto* x = static_cast<const Element*>(buffers.inputs[0]);
    auto* y = static_cast<Element*>(buffers.outputs[0]);
    context.parallel_for(y_extents.element_count(), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t source = source_of(op, i, x_extents, y_extents);
        const double value = source < 0 ? static_cast<double>(op.value) : load(x[source], op.x_scale);
        y[i] = store<Element>(value, op.y_scale);
      }
    });
    return {};
  });
}

}  // namespace graft::ops

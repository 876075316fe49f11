// Reference kernel of PixelUnshuffle.
#include "ops/reference.hpp"
#include "pixel_unshuffle/pixel_unshuffle.hpp"

graft::Status my::run(const PixelUnshuffle& op, const graft::Problem& problem, const graft::Buffers& buffers,
                      const graft::CpuContext& context) {
  const graft::Extents& from = problem.inputs[0].extents;
  const graft::Extents& to = problem.outputs[0].extents;
  const std::int64_t factor = op.factor;
  return graft::ops::dispatch(problem.inputs[0].dtype, [&](auto element) -> graft::Status {
    using Element = decltype(element);
    const auto* x = static_cast<const Element*>(buffers.inputs[0]);
    auto* y = static_cast<Element*>(buffers.outputs[0]);
    context.parallel_for(to.element_count(), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t w = i % to[3];
        const std::int64_t h = i / to[3] % to[2];
        const std::int64_t channel = i / to[3] / to[2] % to[1];
        const std::int64_t n = i / to[3] / to[2] / to[1];
        const std::int64_t row = h * factor + channel / factor % factor;
        const std::int64_t column = w * factor + channel % factor;
        y[i] = x[((n * from[1] + channel / factor / factor) * from[2] + row) * from[3] + column];
      }
    });
    return {};
  });
}

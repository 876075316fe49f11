// Reference kernel of MultiScaleDeformableAttention.
#include "ops/multi_scale_deformable_attention/multi_scale_deformable_attention.hpp"
#include "ops/multi_scale_deformable_attention/sampling.hpp"
#include "ops/reference.hpp"

namespace graft::ops {

Status run(const MultiScaleDeformableAttention& op, const Problem& problem, const Buffers& buffers,
           const CpuContext& context) {
  return dispatch(problem.inputs[0].dtype, [&](auto element) -> Status {
    using Element = decltype(element);
    const auto* value = static_cast<const Element*>(buffers.inputs[0]);
    const bool are_narrow = problem.inputs[1].dtype == DType::i32;
    const auto* locations = static_cast<const Element*>(buffers.inputs[2]);
    const auto* weights = static_cast<const Element*>(buffers.inputs[3]);
    auto* y = static_cast<Element*>(buffers.outputs[0]);
    const Extents& extents = problem.inputs[0].extents;
    const std::int64_t pixels = extents[1];
    const std::int64_t heads = extents[2];
    const std::int64_t channels = extents[3];
    const std::int64_t queries = problem.inputs[2].extents[1];
    std::vector<AttentionLevel> level_of;
    for (std::size_t level = 0; level < op.level_count(problem); ++level) {
      level_of.insert(level_of.end(), static_cast<std::size_t>(op.points_at(level, problem)),
                      level_at(buffers.inputs[1], are_narrow, static_cast<int>(level), pixels));
    }
    context.parallel_for(extents[0] * queries * heads, [&](std::int64_t begin, std::int64_t end) {
      std::vector<double> sums(static_cast<std::size_t>(channels));
      for (std::int64_t row = begin; row < end; ++row) {
        const std::int64_t item = row / (queries * heads);
        // An offset, because a value tensor without pixels may be a null pointer.
        const std::int64_t of_head = (item * pixels * heads + row % heads) * channels;
        std::fill(sums.begin(), sums.end(), 0.);
        std::int64_t point = row * static_cast<std::int64_t>(level_of.size());
        for (const AttentionLevel& level : level_of) {
          const auto corners =
              corners_at(static_cast<float>(locations[2 * point]), static_cast<float>(locations[2 * point + 1]),
                         static_cast<float>(weights[point]), level, pixels);
          ++point;
          for (std::size_t corner = 0; corner < std::size(corners.pixels); ++corner) {
            if (corners.pixels[corner] < 0) continue;
            const Element* from = value + of_head + corners.pixels[corner] * heads * channels;
            for (double& sum : sums) {
              sum += static_cast<double>(corners.weights[corner]) * static_cast<double>(static_cast<float>(*from++));
            }
          }
        }
        Element* to = y + row * channels;
        for (const double sum : sums) *to++ = store<Element>(sum, 1);
      }
    });
    return {};
  });
}

}  // namespace graft::ops

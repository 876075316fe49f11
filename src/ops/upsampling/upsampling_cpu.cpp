// Reference kernel of Upsampling: for every output element, the taps along each axis and the sum of their products.
#include <algorithm>

#include "ops/reference.hpp"
#include "ops/upsampling/sampling.hpp"

namespace graft::ops {
namespace {

/// The elements along one axis that contribute to an output element, and their weights.
struct Taps {
  int count = 1;
  std::array<std::int64_t, 4> index{};
  std::array<double, 4> weight{1, 0, 0, 0};
};

/// Returns the weight of a neighbor in Keys' cubic interpolation with parameter `a`, at a distance `t` of 0 to 2.
double keys(double a, double t) {
  if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
  return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a;
}

std::vector<Taps> taps_of(const Upsampling& op, const SampledAxis& axis) {
  std::vector<Taps> all(static_cast<std::size_t>(axis.out));
  for (std::int64_t i = 0; i < axis.out; ++i) {
    Taps& taps = all[static_cast<std::size_t>(i)];
    const auto [index, remainder] = axis.at(i);
    const double fraction = static_cast<double>(remainder) / static_cast<double>(axis.divisor);
    std::int64_t first = index;
    if (remainder > 0 && op.mode == Interpolation::linear) {
      taps.count = 2;
      taps.weight = {1 - fraction, fraction};
    }
    if (remainder > 0 && op.mode == Interpolation::cubic) {
      const auto a = static_cast<double>(op.cubic_a);
      taps.count = 4;
      taps.weight = {keys(a, 1 + fraction), keys(a, fraction), keys(a, 1 - fraction), keys(a, 2 - fraction)};
      --first;
    }
    for (int tap = 0; tap < taps.count; ++tap) {
      taps.index[static_cast<std::size_t>(tap)] = std::clamp<std::int64_t>(first + tap, 0, axis.in - 1);
    }
  }
  return all;
}

}  // namespace

Status run(const Upsampling& op, const Problem& problem, const Buffers& buffers, const CpuContext& context) {
  const auto axes = sampled_axes(op, problem);
  const std::array taps{taps_of(op, axes[0]), taps_of(op, axes[1]), taps_of(op, axes[2])};
  const Extents& extents = problem.inputs[0].extents;
  const std::int64_t rows = extents[0] * extents[1] * axes[0].out * axes[1].out;
  return dispatch_and_f8(problem.inputs[0].dtype, [&](auto element) -> Status {
    using Element = decltype(element);
    const auto* x = static_cast<const Element*>(buffers.inputs[0]);
    auto* y = static_cast<Element*>(buffers.outputs[0]);
    context.parallel_for(rows, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const std::int64_t slice = row / axes[1].out;
        const std::int64_t plane = slice / axes[0].out;
        const Taps& along_z = taps[0][static_cast<std::size_t>(slice % axes[0].out)];
        const Taps& along_y = taps[1][static_cast<std::size_t>(row % axes[1].out)];
        for (std::int64_t column = 0; column < axes[2].out; ++column) {
          const Taps& along_x = taps[2][static_cast<std::size_t>(column)];
          double sum = 0;
          for (std::size_t k = 0; k < static_cast<std::size_t>(along_z.count); ++k) {
            for (std::size_t j = 0; j < static_cast<std::size_t>(along_y.count); ++j) {
              const Element* from =
                  x + ((plane * axes[0].in + along_z.index[k]) * axes[1].in + along_y.index[j]) * axes[2].in;
              for (std::size_t i = 0; i < static_cast<std::size_t>(along_x.count); ++i) {
                sum += along_z.weight[k] * along_y.weight[j] * along_x.weight[i] *
                       load(from[along_x.index[i]], op.x_scale);
              }
            }
          }
          y[row * axes[2].out + column] = store<Element>(sum, op.y_scale);
        }
      }
    });
    return {};
  });
}

}  // namespace graft::ops

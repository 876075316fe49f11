// Reference kernel of DeformableConvolution, with sums in double.
#include <algorithm>
#include <vector>

#include "ops/deformable_convolution/plan.hpp"
#include "ops/deformable_convolution/sampling.hpp"
#include "ops/reference.hpp"

namespace graft::ops {
namespace {

/// Returns the mean of four pixels of one channel, weighted by their distance. Pixels beyond the image count as 0.
template <class Element>
double sample(const Element* image, const DeformableSizes& sizes, const DeformablePosition& position) {
  if (!position.is_near) return 0;
  const double down = static_cast<double>(position.down);
  const double across = static_cast<double>(position.across);
  double sum = 0;
  for (int corner = 0; corner < 4; ++corner) {
    const std::int64_t row = std::int64_t{position.row} + corner / 2;
    const std::int64_t column = std::int64_t{position.column} + corner % 2;
    if (row < 0 || row >= sizes.rows.in || column < 0 || column >= sizes.columns.in) continue;
    const double weight = (corner / 2 == 0 ? 1 - down : down) * (corner % 2 == 0 ? 1 - across : across);
    sum += weight * load(image[row * sizes.columns.in + column], 1);
  }
  return sum;
}

/// Writes the samples of all channels over the window of pixel `pixel` of item `n`, in the order of the weights.
template <class Element>
void sample_window(const DeformableSizes& sizes, const Element* x, const Element* offset, const Element* mask,
                   std::int64_t n, std::int64_t pixel, double* samples) {
  const std::int64_t taps = sizes.taps();
  const std::int64_t pixels = sizes.out_pixels();
  const std::int64_t offset_channels = sizes.channels / sizes.offset_groups;
  const std::int64_t first_row = pixel / sizes.columns.out * sizes.rows.stride - sizes.rows.pad;
  const std::int64_t first_column = pixel % sizes.columns.out * sizes.columns.stride - sizes.columns.pad;
  for (std::int64_t of = 0; of < sizes.offset_groups; ++of) {
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      const std::int64_t plane = (n * sizes.offset_groups + of) * taps + tap;
      const DeformablePosition position = deformable_position(
          first_row + tap / sizes.columns.kernel * sizes.rows.dilation,
          first_column + tap % sizes.columns.kernel * sizes.columns.dilation,
          static_cast<float>(offset[2 * plane * pixels + pixel]),
          static_cast<float>(offset[(2 * plane + 1) * pixels + pixel]), sizes.rows.in, sizes.columns.in);
      const double factor = sizes.has_mask ? load(mask[plane * pixels + pixel], 1) : 1;
      for (std::int64_t c = of * offset_channels; c < (of + 1) * offset_channels; ++c) {
        const Element* image = x + (n * sizes.channels + c) * sizes.in_pixels();
        samples[c * taps + tap] = factor * sample(image, sizes, position);
      }
    }
  }
}

}  // namespace

Status run(const DeformableConvolution& op, const Problem& problem, const Buffers& buffers, const CpuContext& context) {
  const DeformableSizes sizes(op, problem);
  return dispatch(problem.inputs[0].dtype, [&](auto element) -> Status {
    using Element = decltype(element);
    const auto input = [&](std::size_t port) { return static_cast<const Element*>(buffers.inputs[port]); };
    const Element* weight = input(DeformableConvolution::weight);
    const Element* bias = input(DeformableConvolution::bias);
    auto* y = static_cast<Element*>(buffers.outputs[0]);
    const std::int64_t pixels = sizes.out_pixels();
    const std::int64_t terms = sizes.group_channels() * sizes.taps();
    // Converted once, because every pixel reads them.
    std::vector<double> weights(static_cast<std::size_t>(sizes.outputs * terms));
    std::transform(weight, weight + weights.size(), weights.begin(), [](Element value) { return load(value, 1); });
    context.parallel_for(sizes.items * pixels, [&](std::int64_t begin, std::int64_t end) {
      std::vector<double> samples(static_cast<std::size_t>(sizes.channels * sizes.taps()));
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t n = i / pixels;
        const std::int64_t pixel = i % pixels;
        sample_window(sizes, input(DeformableConvolution::x), input(DeformableConvolution::offset),
                      input(DeformableConvolution::mask), n, pixel, samples.data());
        for (std::int64_t k = 0; k < sizes.outputs; ++k) {
          const double* of_group = samples.data() + k / sizes.group_outputs() * terms;
          const double* of_output = weights.data() + k * terms;
          double sum = sizes.has_bias ? load(bias[k], 1) : 0;
          for (std::int64_t term = 0; term < terms; ++term) sum += of_output[term] * of_group[term];
          y[(n * sizes.outputs + k) * pixels + pixel] = store<Element>(sum, 1);
        }
      }
    });
    return {};
  });
}

}  // namespace graft::ops

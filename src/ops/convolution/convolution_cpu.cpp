// Reference kernel of Convolution. Sums are computed in double. Sums of i8 are integers; they are scaled, biased and
// activated in f32 in the order of the CUDA kernels.
#include "ops/convolution/plan.hpp"
#include "ops/reference.hpp"

namespace graft::ops {
namespace {

/// Returns sum(weight * x) for output channel k of image n at position `out`.
template <class Element>
double sum_at(const ConvolutionPlan& plan, const Element* x, const Element* weight, std::int64_t n, std::int64_t k,
              const std::int64_t (&out)[ConvolutionPlan::axes]) {
  const std::int64_t channels = plan.group_channels();
  const std::int64_t first = k / plan.group_outputs() * channels;
  const auto& [d, h, w] = plan.axis;
  double sum = 0;
  const Element* tap = weight + k * channels * plan.window();
  for (std::int64_t c = 0; c < channels; ++c) {
    const Element* image = x + (n * plan.channels + first + c) * plan.in_pixels();
    for (std::int64_t t = 0; t < d.kernel; ++t) {
      const std::int64_t z = out[0] * d.stride - d.pad + t * d.dilation;
      for (std::int64_t r = 0; r < h.kernel; ++r) {
        const std::int64_t y = out[1] * h.stride - h.pad + r * h.dilation;
        const bool row_inside = z >= 0 && z < d.in && y >= 0 && y < h.in;
        for (std::int64_t s = 0; s < w.kernel; ++s) {
          const std::int64_t column = out[2] * w.stride - w.pad + s * w.dilation;
          const bool inside = row_inside && column >= 0 && column < w.in;
          const double value = inside ? load(image[(z * h.in + y) * w.in + column], 1) : 0;
          sum += value * load(*tap++, 1);
        }
      }
    }
  }
  return sum;
}

}  // namespace

Status run(const Convolution& op, const Problem& problem, const Buffers& buffers, const CpuContext& context) {
  const ConvolutionPlan plan = plan_convolution(op, problem);
  const auto epilogue = ConvolutionEpilogue::of(op, problem.inputs[0].dtype);
  const auto* bias = static_cast<const float*>(buffers.inputs[Convolution::bias]);
  const auto* scale = static_cast<const float*>(buffers.inputs[Convolution::scale]);
  return dispatch(problem.inputs[0].dtype, [&](auto element) -> Status {
    using Element = decltype(element);
    const auto* x = static_cast<const Element*>(buffers.inputs[Convolution::x]);
    const auto* weight = static_cast<const Element*>(buffers.inputs[Convolution::weight]);
    auto* y = static_cast<Element*>(buffers.outputs[0]);
    const std::int64_t pixels = plan.out_pixels();
    context.parallel_for(plan.batch * plan.outputs * pixels, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t k = i / pixels % plan.outputs;
        const std::int64_t pixel = i % pixels;
        const std::int64_t column = pixel % plan.axis[2].out;
        const std::int64_t row = pixel / plan.axis[2].out;
        const double sum = sum_at(plan, x, weight, i / pixels / plan.outputs, k,
                                  {row / plan.axis[1].out, row % plan.axis[1].out, column});
        if constexpr (std::same_as<Element, std::int8_t>) {
          const float result = epilogue.apply(static_cast<float>(sum), epilogue.factor(scale[k]), bias[k]);
          y[i] = quantize(static_cast<double>(result / epilogue.y_scale), 1);
        } else {
          y[i] = store<Element>(epilogue.activate(sum + bias[k]), 1);
        }
      }
    });
    return {};
  });
}

}  // namespace graft::ops

// LayerNormalization whose mean or inverse deviation is used too: TensorRT's layer returns only the normalized tensor.
//
//   y, mean, inverse = LayerNormalization(x, w, b)   becomes   mean = ReduceMean(x); c = x - mean
//                                                              inverse = 1 / sqrt(ReduceMean(c * c) + epsilon)
//                                                              y = c * inverse * w + b
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>

#include "passes/lowering/lowering.hpp"

namespace graft::passes {

std::optional<Replacement> lower_layer_normalization(Site& site) {
  const Shape* shape = site.shape(0);
  if (shape == nullptr || !site.is_real(0))
    return site.no("its input must have a known rank and the type f32, f16 or bf16");
  if (site.node().int_or("stash_type", 1) != 1) return site.no("it computes in a type other than f32 (stash_type)");
  const auto rank = static_cast<std::int64_t>(shape->size());
  std::int64_t axis = site.node().int_or("axis", -1);
  axis += axis < 0 ? rank : 0;
  if (axis < 0 || axis >= rank) return site.no("its axis is out of range for the rank of its input");
  std::vector<std::int64_t> axes(static_cast<std::size_t>(rank - axis));
  std::iota(axes.begin(), axes.end(), axis);

  Replacement result;
  const std::string x = result.in_f32("x0", site.type(0));
  const double epsilon = site.node().float_or("epsilon", 1e-5F);
  result.line(fmt::format("y1 = ReduceMean<axes={}, keepdims=1>({})", axes, x));
  result.line(fmt::format("centered = Sub({}, y1)", x));
  result.line("squares = Mul(centered, centered)");
  result.line(fmt::format("variance = ReduceMean<axes={}, keepdims=1>(squares)", axes));
  result.line(fmt::format("above = Add(variance, {})", result.constant("epsilon", f32_tensor({}, {epsilon}))));
  result.line("deviation = Sqrt(above)");
  result.line("y2 = Reciprocal(deviation)");
  if (site.type(0) == onnx::ElementType::f32) {
    result.line("normalized = Mul(centered, y2)");
  } else {
    result.line("precise = Mul(centered, y2)");
    result.line(fmt::format("normalized = Cast<to={}>(precise)", to_string(site.type(0))));
  }
  const bool has_bias = site.has_input(2);
  result.line(fmt::format("{} = Mul(normalized, x1)", has_bias ? "scaled" : "y0"));
  if (has_bias) result.line("y0 = Add(scaled, x2)");
  result.summary = "separate layers for mean, standard deviation and result";
  return result;
}

}  // namespace graft::passes

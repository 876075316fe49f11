// Computes with quantized integers in f32: subtracts zero points, multiplies by scales, rounds to steps of a scale.
#include "passes/lowering/quantized_values.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "passes/pipeline.hpp"

namespace graft::passes {

IntegerRange range_of(onnx::ElementType type) {
  using enum onnx::ElementType;
  switch (type) {
    case u2: return {0, 3};
    case i2: return {-2, 1};
    case u4: return {0, 15};
    case i4: return {-8, 7};
    case u8: return {0, 255};
    case i8: return {-128, 127};
    case u16: return {0, 65535};
    case i16: return {-32768, 32767};
    default: return {};
  }
}

std::string centered(Replacement& result, const Site& site, std::size_t x, std::size_t zero,
                     const std::vector<std::int64_t>& per_channel) {
  const std::string name = fmt::format("x{}", x);
  std::string real = result.in_f32(name, site.type(x));
  if (!site.has_input(zero)) return real;
  const auto zeros = site.ints(zero);
  if (zeros && std::all_of(zeros->begin(), zeros->end(), [](std::int64_t n) { return n == 0; })) return real;
  std::string offset = result.in_f32(fmt::format("x{}", zero), site.type(zero));
  const Shape* shape = site.shape(zero);
  if (shape != nullptr && shape->size() == 1 && !per_channel.empty()) {
    const std::string target = result.ints(name + "_channels", per_channel);
    result.line(fmt::format("{}_zeros = Reshape({}, {})", name, offset, target));
    offset = name + "_zeros";
  }
  result.line(fmt::format("{}_centered = Sub({}, {})", name, real, offset));
  return name + "_centered";
}

void give_quantized(Replacement& result, const std::string& y, const std::string& x, const std::string& zero,
                    onnx::ElementType type) {
  const auto [least, most] = range_of(type);
  result.line(fmt::format("{}_rounded = Round({})", y, x));
  std::string moved = y + "_rounded";
  if (!zero.empty()) {
    result.line(fmt::format("{0}_moved = Add({0}_rounded, {1})", y, zero));
    moved = y + "_moved";
  }
  const std::string low = result.constant("low", f32_tensor({}, {static_cast<double>(least)}));
  const std::string high = result.constant("high", f32_tensor({}, {static_cast<double>(most)}));
  result.line(fmt::format("{}_limited = Clip({}, {}, {})", y, moved, low, high));
  result.line(fmt::format("{0} = Cast<to={1}>({0}_limited)", y, to_string(type)));
}

bool is_symmetric(Site& site) { return site.shapes().options().quantized == Quantized::symmetric; }

std::string dequantized(Replacement& result, Site& site, std::size_t x, std::size_t scale, std::size_t zero, int axis) {
  if (is_symmetric(site)) {
    result.line(fmt::format("x{0}_real = DequantizeLinear<axis={1}>(x{0}, x{2}{3})", x, axis, scale,
                            site.has_input(zero) ? fmt::format(", x{}", zero) : ""));
    return fmt::format("x{}_real", x);
  }
  const std::string steps = centered(result, site, x, zero, {});
  result.line(
      fmt::format("x{0}_real = Mul({1}, {2})", x, steps, result.in_f32(fmt::format("x{}", scale), site.type(scale))));
  return fmt::format("x{}_real", x);
}

void give_steps(Replacement& result, Site& site, const std::string& y, std::size_t scale, std::size_t zero,
                onnx::ElementType type) {
  if (is_symmetric(site)) {
    const std::string offset = site.has_input(zero)
                                   ? fmt::format("x{}", zero)
                                   : result.constant("no_offset", onnx::TensorData::from_numbers(type, {}, {0}));
    result.line(fmt::format("y0 = QuantizeLinear({}, x{}, {})", y, scale, offset));
    return;
  }
  result.line(fmt::format("steps = Div({}, {})", y, result.in_f32(fmt::format("x{}", scale), site.type(scale))));
  const std::string offset = site.has_input(zero) ? fmt::format("x{}", zero) : "";
  give_quantized(result, "y0", "steps", offset.empty() ? "" : result.in_f32(offset, site.type(zero)), type);
}

std::string scale_factor(Replacement& result, const Site& site, const ScaleInputs& in,
                         const std::vector<std::int64_t>& per_channel) {
  const auto name = [&](std::size_t i) { return result.in_f32(fmt::format("x{}", i), site.type(i)); };
  result.line(fmt::format("both_scales = Mul({}, {})", name(in.a), name(in.b)));
  std::string factor = "both_scales";
  if (in.y != 0) {
    result.line(fmt::format("factor = Div(both_scales, {})", name(in.y)));
    factor = "factor";
  }
  const Shape* shape = site.shape(in.b);
  if (shape == nullptr || shape->size() != 1 || per_channel.empty()) return factor;
  const std::string target = result.ints("factor_channels", per_channel);
  result.line(fmt::format("factors = Reshape({}, {})", factor, target));
  return "factors";
}

}  // namespace graft::passes

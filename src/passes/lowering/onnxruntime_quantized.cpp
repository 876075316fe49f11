// Operators of ONNX Runtime that compute with integers of 8 bits: with the real numbers for which they stand, in f32.
//
//   QLinearAdd(a, b)              becomes   Round((a - zero of a) * scale of a + ..., divided by scale of y) + zero of
//   y QGemm(a, b, c)                becomes   (MatMul(a - zero of a, b - zero of b) + c) * scales, rounded likewise
//   DynamicQuantizeMatMul(a, b)   becomes   DynamicQuantizeLinear, MatMulInteger and Mul
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "passes/lowering/quantized_values.hpp"

namespace graft::passes {
namespace {

/// Writes the tensor `real`, the Softmax of `x`. Before opset 13, all axes from `axis` on are normalized together.
/// Returns false, and stores the reason with site.no(), if the rank is needed and unknown.
bool write_softmax(Replacement& result, Site& site, const std::string& x) {
  const onnx::Node& node = site.node();
  const std::int64_t axis = node.int_or("axis", -1);
  constexpr std::int64_t axes_apart_since = 13;
  if (node.int_or("opset", axes_apart_since) >= axes_apart_since) {
    result.line(fmt::format("real = Softmax<axis={}>({})", axis, x));
    return true;
  }
  const Shape* shape = site.shape(0);
  if (shape == nullptr) {
    static_cast<void>(site.no("its rank is not known"));
    return false;
  }
  const auto rank = static_cast<std::int64_t>(shape->size());
  const std::int64_t first = axis < 0 ? axis + rank : axis;
  if (first == rank - 1) {
    result.line(fmt::format("real = Softmax<axis=-1>({})", x));
    return true;
  }
  result.line(fmt::format("rows = Flatten<axis={}>({})", first, x));
  result.line("shares = Softmax<axis=-1>(rows)");
  result.line(fmt::format("shape = Shape({})", x));
  result.line("real = Reshape(shares, shape)");
  return true;
}

/// Writes the tensor `real`, the AveragePool of `x` with the attributes of the node. Returns false, and stores the
/// reason with site.no(), if it cannot be written.
bool write_average_pool(Replacement& result, Site& site, const std::string& x) {
  const onnx::Node& node = site.node();
  std::string attributes;
  for (const char* name : {"kernel_shape", "strides", "pads"}) {
    if (const auto list = node.ints(name)) attributes += fmt::format("{}={}, ", name, *list);
  }
  if (const std::string rule = node.string_or("auto_pad", "NOTSET"); rule != "NOTSET") {
    attributes += fmt::format("auto_pad=\"{}\", ", rule);
  }
  attributes += fmt::format("ceil_mode={}, count_include_pad={}", node.int_or("ceil_mode", 0),
                            node.int_or("count_include_pad", 0));
  if (node.int_or("channels_last", 0) == 0) {
    result.line(fmt::format("real = AveragePool<{}>({})", attributes, x));
    return true;
  }
  const Shape* shape = site.shape(0);
  if (shape == nullptr || shape->size() < 3) {
    static_cast<void>(site.no("its rank is not known"));
    return false;
  }
  std::vector<std::size_t> first{0, shape->size() - 1};
  std::vector<std::size_t> last{0};
  for (std::size_t axis = 1; axis + 1 < shape->size(); ++axis) {
    first.push_back(axis);
    last.push_back(axis + 1);
  }
  last.push_back(1);
  result.line(fmt::format("planes = Transpose<perm={}>({})", first, x));
  result.line(fmt::format("means = AveragePool<{}>(planes)", attributes));
  result.line(fmt::format("real = Transpose<perm={}>(means)", last));
  return true;
}

}  // namespace

std::optional<Replacement> lower_qlinear_pair(Site& site) {
  if (!is_8_bit(site.type(0)) || !is_8_bit(site.type(3))) return site.no("the types of its inputs are not i8 or u8");
  Replacement result;
  const std::string operation = site.node().op_type == "QLinearAdd" ? "Add" : "Mul";
  const std::string a = dequantized(result, site, 0, 1, 2);
  const std::string b = dequantized(result, site, 3, 4, 5);
  result.line(fmt::format("real = {}({}, {})", operation, a, b));
  give_steps(result, site, "real", 6, 7, site.type(0));
  result.summary = operation + " in f32, rounded to 8 bits";
  return result;
}

std::optional<Replacement> lower_qlinear_one(Site& site) {
  const onnx::Node& node = site.node();
  if (!is_8_bit(site.type(0))) return site.no("the type of its input is neither i8 nor u8");
  Replacement result;
  std::string x = dequantized(result, site, 0, 1, 2);
  const Shape* shape = site.shape(0);
  if (node.op_type == "QLinearSigmoid") {
    result.line(fmt::format("real = Sigmoid({})", x));
  } else if (node.op_type == "QLinearLeakyRelu") {
    result.line(fmt::format("real = LeakyRelu<alpha={:#.9g}>({})", node.float_or("alpha", 0.01F), x));
  } else if (node.op_type == "QLinearSoftmax") {
    if (!write_softmax(result, site, x)) return std::nullopt;
  } else if (node.op_type == "QLinearAveragePool") {
    if (!write_average_pool(result, site, x)) return std::nullopt;
  } else if (node.int_or("channels_last", 0) == 0) {
    result.line(fmt::format("real = GlobalAveragePool({})", x));
  } else {
    if (shape == nullptr || shape->size() < 3) return site.no("its rank is not known");
    std::vector<std::size_t> axes;
    for (std::size_t axis = 1; axis + 1 < shape->size(); ++axis) axes.push_back(axis);
    result.line(fmt::format("real = ReduceMean<axes={}, keepdims=1>({})", axes, x));
  }
  give_steps(result, site, "real", 3, 4, site.has_input(4) ? site.type(4) : site.type(0));
  result.summary = "the same in f32, rounded to 8 bits";
  return result;
}

std::optional<Replacement> lower_qlinear_where(Site& site) {
  if (!is_8_bit(site.type(1)) || !is_8_bit(site.type(4))) return site.no("the types of its inputs are not i8 or u8");
  Replacement result;
  const std::string x = dequantized(result, site, 1, 2, 3);
  const std::string y = dequantized(result, site, 4, 5, 6);
  result.line(fmt::format("real = Where(x0, {}, {})", x, y));
  give_steps(result, site, "real", 7, 8, site.type(8));
  result.summary = "Where in f32, rounded to 8 bits";
  return result;
}

std::optional<Replacement> lower_qgemm(Site& site) {
  enum Input : std::size_t { a, a_scale, a_zero, b, b_scale, b_zero, bias, y_scale, y_zero };
  const onnx::Node& node = site.node();
  const bool transposes_b = node.int_or("transB", 0) != 0;
  const bool transposes_a = node.int_or("transA", 0) != 0;
  const float alpha = node.float_or("alpha", 1);
  Replacement result;
  if (is_symmetric(site)) {
    const std::string left = dequantized(result, site, a, a_scale, a_zero);
    const std::string right = dequantized(result, site, b, b_scale, b_zero, transposes_b ? 0 : 1);
    if (site.has_input(bias)) {
      result.line("bias_steps = Cast<to=float>(x6)");
      result.line("bias_scale = Mul(x1, x4)");
      result.line("bias = Mul(bias_steps, bias_scale)");
    }
    result.line(fmt::format("real = Gemm<alpha={0:#.9g}, beta={0:#.9g}, transA={1}, transB={2}>({3}, {4}{5})", alpha,
                            static_cast<int>(transposes_a), static_cast<int>(transposes_b), left, right,
                            site.has_input(bias) ? ", bias" : ""));
  } else {
    const auto sums = multiply(result, site, {a, a_zero, b, b_zero, transposes_a, transposes_b});
    if (!sums) return std::nullopt;
    std::string whole = sums->name;
    if (site.has_input(bias)) {
      if (sums->is_real) result.line("real_bias = Cast<to=float>(x6)");
      result.line(fmt::format("biased = Add({}, {})", whole, sums->is_real ? "real_bias" : "x6"));
      whole = "biased";
    }
    if (!sums->is_real) {
      result.line(fmt::format("real_sums = Cast<to=float>({})", whole));
      whole = "real_sums";
    }
    if (alpha != 1) {
      result.line(fmt::format("scaled = Mul({}, {})", whole, result.number("alpha", alpha)));
      whole = "scaled";
    }
    result.line(fmt::format("real = Mul({}, {})", whole, scale_factor(result, site, {a_scale, b_scale, 0}, {})));
  }
  result.summary = "Gemm in f32";
  if (!site.has_input(y_scale)) {
    result.line("y0 = Identity(real)");
    return result;
  }
  give_steps(result, site, "real", y_scale, y_zero, site.type(site.has_input(y_zero) ? y_zero : a));
  result.summary += ", rounded to 8 bits";
  return result;
}

std::optional<Replacement> lower_qlinear_concat(Site& site) {
  if (!is_8_bit(site.type(1))) return site.no("the type of its zero point is neither i8 nor u8");
  Replacement result;
  std::vector<std::string> parts;
  for (std::size_t i = 2; i + 2 < site.node().inputs.size(); i += 3) {
    if (!is_8_bit(site.type(i))) return site.no("the types of its inputs are not i8 or u8");
    parts.push_back(dequantized(result, site, i, i + 1, i + 2));
  }
  if (parts.empty()) return site.no("it has no input to concatenate");
  result.line(fmt::format("real = Concat<axis={}>({})", site.node().int_or("axis", 0), fmt::join(parts, ", ")));
  give_steps(result, site, "real", 0, 1, site.type(1));
  result.summary = "Concat in f32, rounded to 8 bits";
  return result;
}

std::optional<Replacement> lower_matmul_integer_to_float(Site& site) {
  const bool is_dynamic = site.node().op_type == "DynamicQuantizeMatMul";
  const std::size_t scale = is_dynamic ? 2 : 3;
  if (site.type(scale) != onnx::ElementType::f32) {
    return site.no(fmt::format("the type of its scales is {}; only f32 is supported", to_string(site.type(scale))));
  }
  Replacement result;
  const auto name = [&](std::size_t i) { return site.has_input(i) ? fmt::format("x{}", i) : std::string("_"); };
  std::string a_scale = "x2";
  if (is_dynamic) {
    result.line("a, a_scale, a_zero = DynamicQuantizeLinear(x0)");
    result.line(fmt::format("sums = MatMulInteger(a, x1, a_zero{})", site.has_input(3) ? ", x3" : ""));
    a_scale = "a_scale";
  } else {
    const bool has_b = site.has_input(5);
    result.line(fmt::format("sums = MatMulInteger(x0, x1{})", has_b               ? fmt::format(", {}, x5", name(4))
                                                              : site.has_input(4) ? ", x4"
                                                                                  : ""));
  }
  const std::size_t bias = is_dynamic ? 4 : 6;
  result.line("real = Cast<to=float>(sums)");
  result.line(fmt::format("scale = Mul({}, {})", a_scale, fmt::format("x{}", scale)));
  result.line(fmt::format("{} = Mul(real, scale)", site.has_input(bias) ? "scaled" : "y0"));
  if (site.has_input(bias)) result.line(fmt::format("y0 = Add(scaled, x{})", bias));
  result.summary = "MatMulInteger and Mul";
  return result;
}

}  // namespace graft::passes

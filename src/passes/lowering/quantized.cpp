// ONNX operators that compute with integers of 8 bits, which TensorRT does not have: in floating point.
//
//   MatMulInteger(a, b)        becomes   Cast(MatMul(a - zero of a, b - zero of b)), in parts if sums are long
//   QLinearConv(x, w)          becomes   Cast(Clip(Round(Conv(x - zero of x, w - zero of w) * scales) + zero of y))
//   DynamicQuantizeLinear(x)   becomes   its formula
//   Cast(Cast(Clip(x)))        becomes   Clip(x), where x is rounded and the first Cast is to 8 bits
//
// Integers of 8 bits minus their zero point are exact in f32, and so are their products, and sums up to 2^24. Longer
// products of matrices are computed in parts that stay below 2^24 and are added as integers; a convolution whose sums
// could exceed 2^24 is left alone. Rounding is to the nearest even number, as in ONNX. The next such operator converts
// its input to floating point again: a number that was rounded and limited to 8 bits is the same after both Casts, so
// they are removed (lower_cast_of_bytes).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "passes/lowering/lowering.hpp"

namespace graft::passes {
namespace {

constexpr std::int64_t exact_sum = std::int64_t{1} << 24;

bool is_8_bit(onnx::ElementType type) { return type == onnx::ElementType::u8 || type == onnx::ElementType::i8; }

/// Returns the largest difference between an integer of 8 bits and its zero point.
std::int64_t largest(const Site& site, std::size_t x, std::size_t zero) {
  const bool is_signed = site.type(x) == onnx::ElementType::i8;
  if (!site.has_input(zero)) return is_signed ? 128 : 255;
  const auto zeros = site.ints(zero);
  if (!zeros || zeros->empty()) return 255;
  const auto [least, most] = std::minmax_element(zeros->begin(), zeros->end());
  const std::int64_t low = is_signed ? -128 : 0;
  const std::int64_t high = is_signed ? 127 : 255;
  return std::max(high - *least, *most - low);
}

/// Returns the name of an input of 8 bits minus its zero point, in f32. `per_channel` is the shape of a zero point for
/// each channel.
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

/// Writes lines that round x, add the zero point, limit the sum and cast it to 8 bits.
void give_quantized(Replacement& result, const std::string& y, const std::string& x, const std::string& zero,
                    onnx::ElementType type) {
  const bool is_signed = type == onnx::ElementType::i8;
  result.line(fmt::format("{}_rounded = Round({})", y, x));
  std::string moved = y + "_rounded";
  if (!zero.empty()) {
    result.line(fmt::format("{0}_moved = Add({0}_rounded, {1})", y, zero));
    moved = y + "_moved";
  }
  const std::string low = result.constant("low", f32_tensor({}, {is_signed ? -128.0 : 0.0}));
  const std::string high = result.constant("high", f32_tensor({}, {is_signed ? 127.0 : 255.0}));
  result.line(fmt::format("{}_limited = Clip({}, {}, {})", y, moved, low, high));
  result.line(fmt::format("{0} = Cast<to={1}>({0}_limited)", y, to_string(type)));
}

/// Returns the name of the factor: scale a times scale b divided by scale y. `per_channel` is its shape if b has a
/// scale for each channel.
std::string factor(Replacement& result, const Site& site, std::size_t a, std::size_t b, std::size_t y,
                   const std::vector<std::int64_t>& per_channel) {
  const auto name = [&](std::size_t i) { return result.in_f32(fmt::format("x{}", i), site.type(i)); };
  result.line(fmt::format("both_scales = Mul({}, {})", name(a), name(b)));
  result.line(fmt::format("factor = Div(both_scales, {})", name(y)));
  const Shape* shape = site.shape(b);
  if (shape == nullptr || shape->size() != 1 || per_channel.empty()) return "factor";
  const std::string target = result.ints("factor_channels", per_channel);
  result.line(fmt::format("factors = Reshape(factor, {})", target));
  return "factors";
}

/// Returns the name of the real numbers for which the integers of an input stand.
std::string dequantized(Replacement& result, const Site& site, std::size_t x, std::size_t scale, std::size_t zero) {
  const std::string steps = centered(result, site, x, zero, {});
  result.line(
      fmt::format("x{0}_real = Mul({1}, {2})", x, steps, result.in_f32(fmt::format("x{}", scale), site.type(scale))));
  return fmt::format("x{}_real", x);
}

/// Writes output 0: the real numbers `y`, divided by a scale and rounded to integers of a type.
void give_steps(Replacement& result, const Site& site, const std::string& y, std::size_t scale, std::size_t zero,
                onnx::ElementType type) {
  result.line(fmt::format("steps = Div({}, {})", y, result.in_f32(fmt::format("x{}", scale), site.type(scale))));
  const std::string offset = site.has_input(zero) ? fmt::format("x{}", zero) : "";
  give_quantized(result, "y0", "steps", offset.empty() ? "" : result.in_f32(offset, site.type(zero)), type);
}

/// Returns a shape for one number per channel: [-1, 1, 1 ...] for the weights (axis 0), [1, -1, 1 ...] for the result
/// (axis 1).
std::vector<std::int64_t> channels_at(std::size_t axis, std::size_t rank) {
  std::vector<std::int64_t> shape(rank, 1);
  if (axis < rank) shape[axis] = -1;
  return shape;
}

struct ConvolutionInputs {
  std::size_t x;
  std::size_t x_zero;
  std::size_t w;
  std::size_t w_zero;
};

/// Writes the sums of a convolution of integers, and returns their name. Returns "", after site.no(), if they may not
/// be exact.
std::string convolve(Replacement& result, Site& site, const ConvolutionInputs& in, const std::string& name) {
  const auto weights = site.sizes(in.w, 1);
  const Shape* shape = site.shape(in.w);
  if (!weights || shape == nullptr || shape->size() < 3 || !is_8_bit(site.type(in.x)) || !is_8_bit(site.type(in.w))) {
    static_cast<void>(site.no(
        "its weights must have known sizes and at least rank 3, and its data and weights must have 8-bit types"));
    return "";
  }
  if (product(*weights) > exact_sum / (largest(site, in.x, in.x_zero) * largest(site, in.w, in.w_zero))) {
    static_cast<void>(site.no("its sums may exceed 2^24, the limit up to which f32 is exact"));
    return "";
  }
  const std::string x = centered(result, site, in.x, in.x_zero, {});
  const std::string w = centered(result, site, in.w, in.w_zero, channels_at(0, shape->size()));
  result.line(fmt::format("{} = Conv<{}>({}, {})", name, convolution_text(site.node()), x, w));
  return name;
}

/// The sums of a product of integer matrices: in f32, or in i32 if the product is split.
struct Sums {
  std::string name;
  bool is_real = false;
};

std::optional<Sums> multiply(Replacement& result, Site& site, std::size_t a, std::size_t a_zero, std::size_t b,
                             std::size_t b_zero) {
  const Shape* a_shape = site.shape(a);
  const Shape* b_shape = site.shape(b);
  if (a_shape == nullptr || b_shape == nullptr || a_shape->size() < 2 || b_shape->size() < 2 ||
      !is_8_bit(site.type(a)) || !is_8_bit(site.type(b))) {
    static_cast<void>(site.no("its matrices must have known ranks of at least 2, and 8-bit types"));
    return std::nullopt;
  }
  const auto inner = site.size(b, -2);
  if (!inner || *inner < 1) {
    static_cast<void>(site.no_size("the inner dimension of its matrices is dynamic"));
    return std::nullopt;
  }
  // There may be a zero point for each row of the left matrix, or for each column of the right one.
  const std::string left = centered(result, site, a, a_zero, {-1, 1});
  const std::string right = centered(result, site, b, b_zero, {1, -1});
  const std::int64_t at_once = exact_sum / (largest(site, a, a_zero) * largest(site, b, b_zero));
  if (*inner <= at_once) {
    result.line(fmt::format("sums = MatMul({}, {})", left, right));
    return Sums{"sums", true};
  }
  std::vector<std::string> parts;
  const std::string columns = result.ints("columns", {-1});
  const std::string rows = result.ints("rows", {-2});
  constexpr std::int64_t most_parts = 64;
  if ((*inner + at_once - 1) / at_once > most_parts) {
    static_cast<void>(
        site.no("the inner dimension of its matrices is so large that more than 64 parts would be necessary for exact "
                "sums in f32"));
    return std::nullopt;
  }
  for (std::int64_t from = 0; from < *inner; from += at_once) {
    const std::size_t i = parts.size();
    const std::string begin = result.ints(fmt::format("from{}", i), {from});
    const std::string end = result.ints(fmt::format("to{}", i), {std::min(from + at_once, *inner)});
    result.line(fmt::format("left{} = Slice({}, {}, {}, {})", i, left, begin, end, columns));
    result.line(fmt::format("right{} = Slice({}, {}, {}, {})", i, right, begin, end, rows));
    result.line(fmt::format("part{0} = MatMul(left{0}, right{0})", i));
    result.line(fmt::format("whole{0} = Cast<to=int32>(part{0})", i));
    if (i == 0) {
      parts.emplace_back("whole0");
      continue;
    }
    result.line(fmt::format("sum{} = Add({}, whole{})", i, parts.back(), i));
    parts.push_back(fmt::format("sum{}", i));
  }
  return Sums{parts.back(), false};
}

/// Returns whether the nodes that compute a floating-point tensor return integers only.
bool is_whole(const onnx::Value* value) {
  if (value == nullptr) return false;
  if (const auto constant = value->constant()) {
    const auto numbers = constant->element_count() <= exact_sum ? constant->numbers() : std::nullopt;
    return numbers && std::all_of(numbers->begin(), numbers->end(), [](double n) { return n == std::trunc(n); });
  }
  const onnx::Node* node = value->producer;
  if (node == nullptr) return false;
  if (node->is("Round") || node->is("Floor") || node->is("Ceil")) return true;
  if (node->is("Cast")) return node->input(0) != nullptr && node->input(0)->type && is_integer(*node->input(0)->type);
  if (node->is("Clip")) return is_whole(node->input(0));
  return node->is("Add") && is_whole(node->input(0)) && is_whole(node->input(1));
}

}  // namespace

std::optional<Replacement> lower_cast_of_bytes(Site& site) {
  if (static_cast<onnx::ElementType>(site.node().int_or("to", 0)) != onnx::ElementType::f32) return std::nullopt;
  onnx::Node* to_bytes = site.producer(0);
  if (to_bytes == nullptr || !to_bytes->is("Cast") || !is_8_bit(site.type(0))) return std::nullopt;
  const onnx::Value* limited = to_bytes->input(0);
  onnx::Node* clip = limited == nullptr || limited->graph != site.node().graph ? nullptr : limited->producer;
  if (clip == nullptr || !clip->is("Clip") || limited->type != onnx::ElementType::f32) return std::nullopt;
  const auto bound = [&](std::size_t i) {
    const auto constant = clip->input(i) == nullptr ? std::nullopt : clip->input(i)->constant();
    return constant ? constant->scalar() : std::nullopt;
  };
  const bool is_signed = site.type(0) == onnx::ElementType::i8;
  const auto low = bound(1);
  const auto high = bound(2);
  const bool is_within = low && high && *low >= (is_signed ? -128 : 0) && *high <= (is_signed ? 127 : 255) &&
                         *low == std::trunc(*low) && *high == std::trunc(*high);
  if (!is_within || !is_whole(clip->input(0))) return std::nullopt;
  Replacement result;
  result.reads.emplace("limited", limited);
  result.together_with = {to_bytes};
  result.line("y0 = Identity(limited)");
  result.summary = fmt::format("'{}'", limited->name);
  result.by_definition = "by definition: a Cast to 8 bits and back does not change integers that fit in 8 bits";
  return result;
}

std::optional<Replacement> lower_dynamic_quantize(Site& site) {
  if (site.type(0) != onnx::ElementType::f32)
    return site.no(fmt::format("the type of its input is {}; only f32 is supported", to_string(site.type(0))));
  Replacement result;
  const std::string zero = result.constant("zero", f32_tensor({}, {0}));
  const std::string one = result.constant("one", f32_tensor({}, {1}));
  const std::string steps = result.constant("steps", f32_tensor({}, {255}));
  result.line("most = ReduceMax<keepdims=0>(x0)");
  result.line("least = ReduceMin<keepdims=0>(x0)");
  result.line(fmt::format("high_end = Max(most, {})", zero));
  result.line(fmt::format("low_end = Min(least, {})", zero));
  result.line("range = Sub(high_end, low_end)");
  result.line(fmt::format("y1 = Div(range, {})", steps));
  // For zeros alone the scale is 0, which cannot be a divisor.
  result.line(fmt::format("is_flat = Equal(y1, {})", zero));
  result.line(fmt::format("divisor = Where(is_flat, {}, y1)", one));
  result.line("below = Div(low_end, divisor)");
  result.line("above = Neg(below)");
  give_quantized(result, "y2", "above", "", onnx::ElementType::u8);
  result.line("scaled = Div(x0, divisor)");
  give_quantized(result, "y0", "scaled", "y2_limited", onnx::ElementType::u8);
  result.summary = "separate layers for scale, zero point and rounded values";
  return result;
}

std::optional<Replacement> lower_matmul_integer(Site& site) {
  Replacement result;
  const auto sums = multiply(result, site, 0, 2, 1, 3);
  if (!sums) return std::nullopt;
  result.line(sums->is_real ? fmt::format("y0 = Cast<to=int32>({})", sums->name)
                            : fmt::format("y0 = Identity({})", sums->name));
  result.summary = "MatMul in f32, exact";
  return result;
}

std::optional<Replacement> lower_conv_integer(Site& site) {
  Replacement result;
  if (convolve(result, site, {0, 2, 1, 3}, "sums").empty()) return std::nullopt;
  result.line("y0 = Cast<to=int32>(sums)");
  result.summary = "Conv in f32, exact";
  return result;
}

std::optional<Replacement> lower_qlinear_conv(Site& site) {
  Replacement result;
  const std::string sums = convolve(result, site, {0, 2, 3, 5}, "sums");
  if (sums.empty()) return std::nullopt;
  const std::size_t rank = site.shape(3)->size();
  std::string whole = sums;
  if (site.has_input(8)) {
    const std::string target = result.ints("bias_shape", channels_at(1, rank));
    result.line("bias = Cast<to=float>(x8)");
    result.line(fmt::format("biases = Reshape(bias, {})", target));
    result.line(fmt::format("biased = Add({}, biases)", sums));
    whole = "biased";
  }
  result.line(fmt::format("scaled = Mul({}, {})", whole, factor(result, site, 1, 4, 6, channels_at(1, rank))));
  give_quantized(result, "y0", "scaled", site.has_input(7) ? result.in_f32("x7", site.type(7)) : "",
                 site.has_input(7) ? site.type(7) : site.type(0));
  result.summary = "Conv in f32, rounded to 8 bits";
  return result;
}

std::optional<Replacement> lower_qlinear_matmul(Site& site) {
  Replacement result;
  const Shape* b_scale = site.shape(4);
  const Shape* a_scale = site.shape(1);
  const auto is_scalar = [](const Shape* shape) {
    return shape != nullptr && std::all_of(shape->begin(), shape->end(), [](const Dim& dim) { return dim == Dim(1); });
  };
  if (!is_scalar(a_scale) || !is_scalar(b_scale))
    return site.no("each of its matrices must have one scale for the whole tensor, and not one for each row or column");
  const auto sums = multiply(result, site, 0, 2, 3, 5);
  if (!sums) return std::nullopt;
  std::string real = sums->name;
  if (!sums->is_real) {
    result.line(fmt::format("real = Cast<to=float>({})", sums->name));
    real = "real";
  }
  result.line(fmt::format("scaled = Mul({}, {})", real, factor(result, site, 1, 4, 6, {})));
  give_quantized(result, "y0", "scaled", result.in_f32("x7", site.type(7)), site.type(7));
  result.summary = "MatMul in f32, rounded to 8 bits";
  return result;
}

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
  const std::string x = dequantized(result, site, 0, 1, 2);
  if (node.op_type == "QLinearSigmoid") {
    result.line(fmt::format("real = Sigmoid({})", x));
  } else if (node.op_type == "QLinearLeakyRelu") {
    result.line(fmt::format("real = LeakyRelu<alpha={:#.9g}>({})", node.float_or("alpha", 0.01F), x));
  } else if (node.int_or("channels_last", 0) == 0) {
    result.line(fmt::format("real = GlobalAveragePool({})", x));
  } else {
    const Shape* shape = site.shape(0);
    if (shape == nullptr || shape->size() < 3) return site.no("its rank is not known");
    std::vector<std::size_t> axes;
    for (std::size_t axis = 1; axis + 1 < shape->size(); ++axis) axes.push_back(axis);
    result.line(fmt::format("real = ReduceMean<axes={}, keepdims=1>({})", axes, x));
  }
  give_steps(result, site, "real", 3, 4, site.type(0));
  result.summary = "the same in f32, rounded to 8 bits";
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

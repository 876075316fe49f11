// ONNX operators that compute with integers of 8 bits, which TensorRT does not have: in floating point.
//
//   MatMulInteger(a, b)        becomes   Cast(MatMul(a - zero of a, b - zero of b)), in parts if sums are long
//   QLinearConv(x, w)          becomes   Cast(Clip(Round(Conv(x - zero of x, w - zero of w) * scales) + zero of y))
//   DynamicQuantizeLinear(x)   becomes   its formula
//   Cast(Cast(Clip(x)))        becomes   Clip(x), where x is rounded and the first Cast is to 8 bits
//
// Integers of 8 bits minus their zero point are exact in f32, and so are their products, and sums up to 2^24. Products
// whose sums may be larger, by the values of their weights, are computed in parts that stay below 2^24 and are added as
// integers. Rounding is to the nearest even number, as in ONNX. The next such operator converts
// its input to floating point again: a number that was rounded and limited to 8 bits is the same after both Casts, so
// they are removed (lower_cast_of_bytes).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>

#include "passes/lowering/quantized_values.hpp"

namespace graft::passes {
namespace {

constexpr std::int64_t exact_sum = std::int64_t{1} << 24;

/// Returns an upper bound of |x - zero point| for an 8-bit input. `x` and `zero` are input indices.
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

/// Returns the positions 0, ..., `inner` at which a sum of `inner` products must be split so that each partial sum of
/// each of `columns` columns stays below 2^24 and is exact in f32. magnitude(position, column) returns the largest
/// magnitude of one product. Returns nothing if a single product is too large.
std::optional<std::vector<std::int64_t>> split_sums(
    std::int64_t inner, std::int64_t columns,
    const std::function<std::int64_t(std::int64_t position, std::int64_t column)>& magnitude) {
  std::vector<std::int64_t> splits{0};
  std::vector<std::int64_t> sums(static_cast<std::size_t>(columns), 0);
  std::vector<std::int64_t> products(static_cast<std::size_t>(columns), 0);
  for (std::int64_t i = 0; i < inner; ++i) {
    bool is_above = false;
    for (std::int64_t column = 0; column < columns; ++column) {
      const auto at = static_cast<std::size_t>(column);
      products[at] = magnitude(i, column);
      if (products[at] > exact_sum) return std::nullopt;
      is_above = is_above || sums[at] + products[at] > exact_sum;
    }
    if (is_above) {
      splits.push_back(i);
      std::fill(sums.begin(), sums.end(), 0);
    }
    for (std::size_t at = 0; at < sums.size(); ++at) sums[at] += products[at];
  }
  splits.push_back(inner);
  return splits;
}

/// Returns a function that computes |element - zero point| of a constant 8-bit input from the row-major index of the
/// element and the index of its channel. Returns nothing if the input or its zero points are not constant. `x` and
/// `zero` are input indices.
std::optional<std::function<std::int64_t(std::int64_t element, std::int64_t channel)>> magnitudes_of(const Site& site,
                                                                                                     std::size_t x,
                                                                                                     std::size_t zero) {
  const auto constant = site.constant(x);
  const auto zeros = site.has_input(zero) ? site.ints(zero) : std::vector<std::int64_t>{0};
  if (!constant || !is_8_bit(constant->type) || !zeros || zeros->empty()) return std::nullopt;
  return [constant, zeros](std::int64_t element, std::int64_t channel) -> std::int64_t {
    const char byte = constant->bytes.view()[static_cast<std::size_t>(element)];
    const std::int64_t number =
        constant->type == onnx::ElementType::i8 ? static_cast<signed char>(byte) : static_cast<unsigned char>(byte);
    return std::abs(number - (*zeros)[zeros->size() == 1 ? 0 : static_cast<std::size_t>(channel) % zeros->size()]);
  };
}

/// Writes the sum of products over the ranges [splits[i], splits[i + 1]): slices of `left` along `left_axis` and of
/// `right` along `right_axis`. `product` returns the operator call for the product of two slices. Without a split, the
/// sum is f32, otherwise i32.
Sums add_parts(Replacement& result, const std::vector<std::int64_t>& splits, const std::string& left, int left_axis,
               const std::string& right, int right_axis,
               const std::function<std::string(const std::string& left, const std::string& right)>& product) {
  if (splits.size() == 2) {
    result.line("sums = " + product(left, right));
    return {"sums", true};
  }
  const std::string left_axes = result.ints("left_axes", {left_axis});
  const std::string right_axes = result.ints("right_axes", {right_axis});
  std::string sum;
  for (std::size_t i = 0; i + 1 < splits.size(); ++i) {
    const std::string begin = result.ints(fmt::format("from{}", i), {splits[i]});
    const std::string end = result.ints(fmt::format("to{}", i), {splits[i + 1]});
    result.line(fmt::format("left{} = Slice({}, {}, {}, {})", i, left, begin, end, left_axes));
    result.line(fmt::format("right{} = Slice({}, {}, {}, {})", i, right, begin, end, right_axes));
    result.line(fmt::format("part{} = {}", i, product(fmt::format("left{}", i), fmt::format("right{}", i))));
    result.line(fmt::format("whole{0} = Cast<to=int32>(part{0})", i));
    if (i != 0) result.line(fmt::format("sum{} = Add({}, whole{})", i, sum, i));
    sum = fmt::format("{}{}", i == 0 ? "whole" : "sum", i);
  }
  return {sum, false};
}

constexpr std::size_t most_parts = 64;

/// Returns the shape that puts one number per channel on `axis` of a tensor of this rank: -1 on the axis and 1
/// elsewhere.
std::vector<std::int64_t> channels_at(std::size_t axis, std::size_t rank) {
  std::vector<std::int64_t> shape(rank, 1);
  if (axis < rank) shape[axis] = -1;
  return shape;
}

std::vector<std::size_t> channels_first(std::size_t rank) {
  std::vector<std::size_t> axes{0, rank - 1};
  for (std::size_t axis = 1; axis + 1 < rank; ++axis) axes.push_back(axis);
  return axes;
}

std::vector<std::size_t> channels_last(std::size_t rank) {
  std::vector<std::size_t> axes{0};
  for (std::size_t axis = 2; axis < rank; ++axis) axes.push_back(axis);
  axes.push_back(1);
  return axes;
}

bool has_channels_last(const onnx::Node& node) { return node.int_or("channels_last", 0) != 0; }

struct ConvolutionInputs {
  std::size_t x;
  std::size_t x_zero;
  std::size_t w;
  std::size_t w_zero;
};

/// Writes the integer sums of a convolution. Returns nothing, and stores the reason with site.no(), if they might not
/// be exact or sizes are unknown.
std::optional<Sums> convolve(Replacement& result, Site& site, const ConvolutionInputs& in) {
  const auto sizes = site.sizes(in.w);
  if (!sizes || sizes->size() < 3 || !is_8_bit(site.type(in.x)) || !is_8_bit(site.type(in.w))) {
    return site.no(
        "its weights must have known sizes and at least rank 3, and its data and weights must have 8-bit types");
  }
  const std::int64_t outputs = (*sizes)[0];
  const std::int64_t channels = (*sizes)[1];
  const std::int64_t positions = product({sizes->begin() + 2, sizes->end()});
  const std::int64_t x_largest = largest(site, in.x, in.x_zero);
  const auto known = magnitudes_of(site, in.w, in.w_zero);
  const std::int64_t w_largest = largest(site, in.w, in.w_zero);
  const auto magnitude = [&](std::int64_t channel, std::int64_t output) {
    if (!known) return positions * w_largest * x_largest;
    std::int64_t sum = 0;
    for (std::int64_t i = 0; i < positions; ++i) {
      sum += (*known)((output * channels + channel) * positions + i, output);
    }
    return sum * x_largest;
  };
  const auto splits = split_sums(channels, known ? outputs : 1, magnitude);
  const bool has_groups = site.node().int_or("group", 1) != 1;
  if (!splits || splits->size() - 1 > most_parts || (has_groups && splits->size() > 2)) {
    return site.no("its sums may exceed 2^24, the limit up to which f32 is exact");
  }
  std::string x = centered(result, site, in.x, in.x_zero, {});
  if (has_channels_last(site.node())) {
    result.line(fmt::format("planes = Transpose<perm={}>({})", channels_first(sizes->size()), x));
    x = "planes";
  }
  const std::string w = centered(result, site, in.w, in.w_zero, channels_at(0, sizes->size()));
  return add_parts(result, *splits, x, 1, w, 1, [&](const std::string& left, const std::string& right) {
    return fmt::format("Conv<{}>({}, {})", convolution_text(site.node()), left, right);
  });
}

/// Returns the name of the sums in f32. Sums above 2^24, which are i32, are rounded once by a Cast.
std::string real_sums(Replacement& result, const Sums& sums) {
  if (sums.is_real) return sums.name;
  result.line(fmt::format("real_sums = Cast<to=float>({})", sums.name));
  return "real_sums";
}

/// Returns whether all elements of a floating-point tensor are known to be integers, from the nodes that compute it.
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

std::optional<Sums> multiply(Replacement& result, Site& site, const MatrixInputs& in) {
  const Shape* a_shape = site.shape(in.a);
  const Shape* b_shape = site.shape(in.b);
  if (a_shape == nullptr || b_shape == nullptr || a_shape->size() < 2 || b_shape->size() < 2 ||
      !is_8_bit(site.type(in.a)) || !is_8_bit(site.type(in.b))) {
    return site.no("its matrices must have known ranks of at least 2, and 8-bit types");
  }
  const auto inner = site.size(in.b, in.transposes_b ? -1 : -2);
  if (!inner || *inner < 1) return site.no_size("the inner dimension of its matrices is dynamic");
  const std::int64_t a_largest = largest(site, in.a, in.a_zero);
  const std::int64_t b_largest = largest(site, in.b, in.b_zero);
  const auto known = b_shape->size() == 2 ? magnitudes_of(site, in.b, in.b_zero) : std::nullopt;
  const std::int64_t columns = known ? *site.size(in.b, in.transposes_b ? -2 : -1) : 1;
  const auto splits = split_sums(*inner, columns, [&](std::int64_t position, std::int64_t column) {
    if (!known) return a_largest * b_largest;
    const std::int64_t element = in.transposes_b ? column * *inner + position : position * columns + column;
    return a_largest * (*known)(element, column);
  });
  if (!splits || splits->size() - 1 > most_parts) {
    return site.no(
        "the inner dimension of its matrices is so large that more than 64 parts would be necessary for exact sums in "
        "f32");
  }
  // There may be a zero point for each row of the left matrix, or for each column of the right one.
  using Sizes = std::vector<std::int64_t>;
  std::string left = centered(result, site, in.a, in.a_zero, in.transposes_a ? Sizes{1, -1} : Sizes{-1, 1});
  std::string right = centered(result, site, in.b, in.b_zero, in.transposes_b ? Sizes{-1, 1} : Sizes{1, -1});
  if (in.transposes_a) {
    result.line(fmt::format("left = Transpose<perm=[1, 0]>({})", left));
    left = "left";
  }
  if (in.transposes_b) {
    result.line(fmt::format("right = Transpose<perm=[1, 0]>({})", right));
    right = "right";
  }
  return add_parts(result, *splits, left, -1, right, -2, [](const std::string& one, const std::string& other) {
    return fmt::format("MatMul({}, {})", one, other);
  });
}

std::optional<Replacement> lower_matmul_integer(Site& site) {
  Replacement result;
  const auto sums = multiply(result, site, {.a = 0, .a_zero = 2, .b = 1, .b_zero = 3});
  if (!sums) return std::nullopt;
  result.line(sums->is_real ? fmt::format("y0 = Cast<to=int32>({})", sums->name)
                            : fmt::format("y0 = Identity({})", sums->name));
  result.summary = "MatMul in f32, exact";
  return result;
}

std::optional<Replacement> lower_conv_integer(Site& site) {
  Replacement result;
  const auto sums = convolve(result, site, {0, 2, 1, 3});
  if (!sums) return std::nullopt;
  result.line(sums->is_real ? fmt::format("y0 = Cast<to=int32>({})", sums->name)
                            : fmt::format("y0 = Identity({})", sums->name));
  result.summary = "Conv in f32, exact";
  return result;
}

std::optional<Replacement> lower_qlinear_conv(Site& site) {
  Replacement result;
  // OpenVINO 2026.4.1 computes other numbers where the weights have a scale for each channel.
  result.is_proven_by_onnxruntime = true;
  const Shape* weights = site.shape(3);
  const std::size_t rank = weights == nullptr ? 0 : weights->size();
  std::string real;
  if (is_symmetric(site) && rank >= 3) {
    std::string x = dequantized(result, site, 0, 1, 2);
    if (has_channels_last(site.node())) {
      result.line(fmt::format("planes = Transpose<perm={}>({})", channels_first(rank), x));
      x = "planes";
    }
    const std::string w = dequantized(result, site, 3, 4, 5, 0);
    if (site.has_input(8)) {
      result.line("bias_steps = Cast<to=float>(x8)");
      result.line("bias_scale = Mul(x1, x4)");
      result.line("bias = Mul(bias_steps, bias_scale)");
    }
    result.line(fmt::format("real = Conv<{}>({}, {}{})", convolution_text(site.node()), x, w,
                            site.has_input(8) ? ", bias" : ""));
    real = "real";
  } else {
    const auto sums = convolve(result, site, {0, 2, 3, 5});
    if (!sums) return std::nullopt;
    std::string whole = sums->name;
    if (site.has_input(8)) {
      const std::string target = result.ints("bias_shape", channels_at(1, rank));
      result.line(fmt::format("bias = Reshape(x8, {})", target));
      if (sums->is_real) result.line("real_bias = Cast<to=float>(bias)");
      result.line(fmt::format("biased = Add({}, {})", whole, sums->is_real ? "real_bias" : "bias"));
      whole = "biased";
    }
    const std::string factors = scale_factor(result, site, {1, 4, 6}, channels_at(1, rank));
    result.line(fmt::format("steps = Mul({}, {})", real_sums(result, {whole, sums->is_real}), factors));
  }
  const std::string steps = real.empty() ? "steps" : real;
  std::string last = steps;
  if (has_channels_last(site.node())) {
    result.line(fmt::format("pixels = Transpose<perm={}>({})", channels_last(rank), steps));
    last = "pixels";
  }
  const onnx::ElementType type = site.has_input(7) ? site.type(7) : site.type(0);
  if (real.empty()) {
    give_quantized(result, "y0", last, site.has_input(7) ? result.in_f32("x7", site.type(7)) : "", type);
    result.summary = "Conv in f32, rounded to 8 bits";
  } else {
    give_steps(result, site, last, 6, 7, type);
    result.summary = "Conv between DequantizeLinear and QuantizeLinear";
  }
  return result;
}

std::optional<Replacement> lower_qlinear_matmul(Site& site) {
  Replacement result;
  // A row of the left matrix may have a scale of its own, and a column of the right one.
  const Shape* a_scale = site.shape(1);
  if (a_scale == nullptr || site.shape(4) == nullptr || site.shape(4)->size() > 1) {
    return site.no("the rank of its scales is not known, or it has more scales than rows and columns");
  }
  if (is_symmetric(site) && a_scale->size() <= 1 && site.size(1, 0).value_or(1) == 1) {
    const Shape* b = site.shape(3);
    const std::string left = dequantized(result, site, 0, 1, 2);
    const std::string right = dequantized(result, site, 3, 4, 5, b == nullptr ? 1 : static_cast<int>(b->size()) - 1);
    result.line(fmt::format("real = MatMul({}, {})", left, right));
    give_steps(result, site, "real", 6, 7, site.type(7));
    result.summary = "MatMul between DequantizeLinear and QuantizeLinear";
    return result;
  }
  const auto sums = multiply(result, site, {.a = 0, .a_zero = 2, .b = 3, .b_zero = 5});
  if (!sums) return std::nullopt;
  const std::string sum = real_sums(result, *sums);
  if (a_scale->size() == 1 && site.size(1, 0) != 1) {
    const std::string rows = result.ints("row_shape", {-1, 1});
    result.line(fmt::format("row_scales = Reshape({}, {})", result.in_f32("x1", site.type(1)), rows));
    result.line(fmt::format("both_scales = Mul(row_scales, {})", result.in_f32("x4", site.type(4))));
    result.line(fmt::format("factor = Div(both_scales, {})", result.in_f32("x6", site.type(6))));
    result.line(fmt::format("scaled = Mul({}, factor)", sum));
  } else {
    result.line(fmt::format("scaled = Mul({}, {})", sum, scale_factor(result, site, {1, 4, 6}, {})));
  }
  give_quantized(result, "y0", "scaled", result.in_f32("x7", site.type(7)), site.type(7));
  result.summary = "MatMul in f32, rounded to 8 bits";
  return result;
}

}  // namespace graft::passes

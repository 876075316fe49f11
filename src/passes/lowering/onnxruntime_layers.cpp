// Layers that ONNX Runtime's optimizer writes in place of two or more of ONNX: activations of the GELU family, and
// products with a bias, a factor or an activation.
//
//   BiasGelu(x, b)                            becomes   s = x + b; y = 0.5 * s * (1 + Erf(s / sqrt(2)))
//   FusedMatMul<transB=1, alpha=0.5>(a, b)    becomes   y = 0.5 * MatMul(a, Transpose(b))
//   FusedConv<activation="Relu">(x, w, b, z)  becomes   y = Relu(Conv(x, w, b) + z)
//   MatMulNBits(a, b, scales)                 becomes   y = MatMul(a, the weights in the type of a)
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "passes/lowering/lowering.hpp"

namespace graft::passes {
namespace {

/// Writes nodes that compute the exact GELU of the f32 tensor `x`, except for the last operation, which is returned as
/// text ("Mul(double, half)").
std::string gelu_of(Replacement& result, const std::string& x) {
  result.line(fmt::format("scaled = Mul({}, {})", x, result.number("root", 0.70710678118654752)));
  result.line("erf = Erf(scaled)");
  result.line(fmt::format("above = Add(erf, {})", result.number("one", 1)));
  result.line(fmt::format("double = Mul({}, above)", x));
  return fmt::format("Mul(double, {})", result.number("half", 0.5));
}

/// Writes nodes that compute the tanh approximation of GELU of the f32 tensor `x`, except for the last operation, which
/// is returned as text.
std::string fast_gelu_of(Replacement& result, const std::string& x) {
  result.line(fmt::format("square = Mul({0}, {0})", x));
  result.line(fmt::format("bent = Mul(square, {})", result.number("cubic", 0.035677408136300125)));
  result.line(fmt::format("slope = Add(bent, {})", result.number("linear", 0.7978845608028654)));
  result.line(fmt::format("inner = Mul({}, slope)", x));
  result.line("tanh = Tanh(inner)");
  result.line(fmt::format("above = Add(tanh, {})", result.number("one", 1)));
  result.line(fmt::format("double = Mul({}, above)", x));
  return fmt::format("Mul(double, {})", result.number("half", 0.5));
}

/// Returns, as text, the operator call that computes the activation `name` of `x`, whose type is `type`, or nothing if
/// the name is unknown. parameter(i, otherwise) returns the i-th activation parameter, or `otherwise` if it is absent.
template <class Parameter>
std::optional<std::string> activation_of(Replacement& result, const std::string& name, const std::string& x,
                                         onnx::ElementType type, const Parameter& parameter) {
  for (const char* plain : {"Relu", "Tanh", "Sigmoid", "Softplus", "Softsign", "HardSwish"}) {
    if (name == plain) return fmt::format("{}({})", name, x);
  }
  if (name == "LeakyRelu") return fmt::format("LeakyRelu<alpha={}>({})", real_text(parameter(0, 0.01F)), x);
  if (name == "Elu" || name == "ThresholdedRelu")
    return fmt::format("{}<alpha={}>({})", name, real_text(parameter(0, 1)), x);
  if (name == "HardSigmoid") {
    return fmt::format("HardSigmoid<alpha={}, beta={}>({})", real_text(parameter(0, 0.2F)),
                       real_text(parameter(1, 0.5F)), x);
  }
  if (name == "Clip") {
    const std::string least = result.number("least", parameter(0, std::numeric_limits<float>::lowest()), type);
    return fmt::format("Clip({}, {}, {})", x, least,
                       result.number("most", parameter(1, std::numeric_limits<float>::max()), type));
  }
  return std::nullopt;
}

/// Writes the Transpose of an input of FusedMatMul according to its attributes trans<side> and transBatch<side> (`side`
/// is A or B), and returns the name of the result, or of the input if nothing is transposed. Returns nothing if the
/// rank is needed and unknown.
std::optional<std::string> turned(Site& site, Replacement& result, std::size_t input, const std::string& side) {
  std::string x = fmt::format("x{}", input);
  const bool last = site.node().int_or("trans" + side, 0) != 0;
  const bool batch = site.node().int_or("transBatch" + side, 0) != 0;
  if (!last && !batch) return x;
  const Shape* shape = site.shape(input);
  if (shape == nullptr) return std::nullopt;
  if (shape->size() < 2) return x;
  std::vector<std::size_t> axes(shape->size());
  std::iota(axes.begin(), axes.end(), 0);
  // transBatch brings the first axis behind the batch.
  if (batch) std::rotate(axes.begin(), axes.begin() + 1, axes.end() - 1);
  if (last) std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
  result.line(fmt::format("{0}_turned = Transpose<perm={1}>({0})", x, axes));
  return x + "_turned";
}

/// Returns the first `count` numbers of each of `rows` rows of packed bytes. A byte holds 8 / `bits` numbers, the
/// lowest bits first.
std::vector<std::int64_t> unpacked(const std::vector<std::int64_t>& bytes, std::int64_t rows, std::int64_t count,
                                   std::int64_t bits) {
  std::vector<std::int64_t> numbers;
  numbers.reserve(static_cast<std::size_t>(rows * count));
  const auto row_bytes = static_cast<std::int64_t>(bytes.size()) / rows;
  const std::int64_t in_byte = 8 / bits;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t byte = bytes[static_cast<std::size_t>(row * row_bytes + i / in_byte)];
      numbers.push_back((byte >> (i % in_byte * bits)) & ((std::int64_t{1} << bits) - 1));
    }
  }
  return numbers;
}

}  // namespace

std::optional<Replacement> lower_gelu(Site& site) {
  const std::string& op = site.node().op_type;
  if (!site.is_real(0)) return site.no_type(0);
  Replacement result;
  std::string x = result.in_f32("x0", site.type(0));
  if (site.has_input(1)) {
    result.line(fmt::format("sum = Add({}, {})", x, result.in_f32("x1", site.type(0))));
    x = "sum";
  }
  if (op == "QuickGelu") {
    const std::string alpha = result.number("alpha", site.node().float_or("alpha", 1.702F));
    result.line(fmt::format("steep = Mul({}, {})", x, alpha));
    result.line("share = Sigmoid(steep)");
    result.give("y0", site.type(0), fmt::format("Mul({}, share)", x));
    result.summary = "Sigmoid and Mul";
    return result;
  }
  const bool is_fast = op == "FastGelu";
  result.give("y0", site.type(0), is_fast ? fast_gelu_of(result, x) : gelu_of(result, x));
  result.summary = is_fast ? "Tanh, Add and Mul" : "Erf, Add and Mul";
  return result;
}

std::optional<Replacement> lower_bias_split_gelu(Site& site) {
  if (!site.is_real(0)) return site.no_type(0);
  Replacement result;
  const std::string bias = result.in_f32("x1", site.type(0));
  result.line(fmt::format("sum = Add({}, {})", result.in_f32("x0", site.type(0)), bias));
  result.line("left, right = Split<axis=-1>(sum)");
  result.line(fmt::format("gelu = {}", gelu_of(result, "right")));
  result.give("y0", site.type(0), "Mul(left, gelu)");
  result.summary = "Add, Split, Erf and Mul";
  return result;
}

std::optional<Replacement> lower_bias_add(Site& /*site*/) {
  Replacement result;
  result.line("biased = Add(x0, x1)");
  result.line("y0 = Add(biased, x2)");
  result.summary = "Add";
  return result;
}

std::optional<Replacement> lower_fused_matmul(Site& site) {
  if (!site.is_real(0)) return site.no_type(0);
  Replacement result;
  const auto a = turned(site, result, 0, "A");
  const auto b = turned(site, result, 1, "B");
  if (!a || !b) return site.no(fmt::format("it transposes input {}, whose rank is not known", a ? "B" : "A"));
  const float alpha = site.node().float_or("alpha", 1);
  if (alpha == 1) {
    result.line(fmt::format("y0 = MatMul({}, {})", *a, *b));
  } else {
    result.line(fmt::format("product = MatMul({}, {})", *a, *b));
    result.line(fmt::format("y0 = Mul(product, {})", result.number("alpha", alpha, site.type(0))));
  }
  result.summary = alpha == 1 ? "MatMul" : "MatMul and Mul";
  return result;
}

std::optional<Replacement> lower_fused_gemm(Site& site) {
  const onnx::Node& node = site.node();
  if (!site.is_real(0)) return site.no_type(0);
  const std::string activation = node.string_or("activation", "");
  Replacement result;
  const std::string gemm =
      fmt::format("Gemm<alpha={}, beta={}, transA={}, transB={}>(x0, x1{})", real_text(node.float_or("alpha", 1)),
                  real_text(node.float_or("beta", 1)), node.int_or("transA", 0), node.int_or("transB", 0),
                  site.has_input(2) ? ", x2" : "");
  result.summary = "Gemm";
  if (activation.empty()) {
    result.line("y0 = " + gemm);
    return result;
  }
  result.line("before = " + gemm);
  const auto parameter = [&](int i, float otherwise) {
    return node.float_or(i == 0 ? "activation_alpha" : "activation_beta", otherwise);
  };
  const auto after = activation_of(result, activation, "before", site.type(0), parameter);
  if (!after) return site.no(fmt::format("its activation is '{}', which Graft does not know", activation));
  result.line("y0 = " + *after);
  result.summary += " and " + activation;
  return result;
}

std::optional<Replacement> lower_fused_conv(Site& site) {
  const onnx::Node& node = site.node();
  if (!site.is_real(0)) return site.no_type(0);
  const std::string activation = node.string_or("activation", "");
  const auto parameters = node.floats("activation_params");
  Replacement result;
  result.summary = "Conv";
  std::string x = "x0";
  std::vector<std::size_t> back;
  if (node.op_type.starts_with("Nhwc")) {
    const Shape* shape = site.shape(0);
    const Shape* weights = site.shape(1);
    if (shape == nullptr || shape->size() < 3) return site.no("the rank of its input is not known");
    // The schema has the weights of Conv; a kernel for GPUs is said to take them with the channels last.
    if (weights == nullptr || weights->size() != shape->size() || !(*weights)[1].is_constant() ||
        Dim((*weights)[1].value() * node.int_or("group", 1)) != shape->back()) {
      return site.no("its weights do not have the channels of its input on axis 1");
    }
    std::vector<std::size_t> axes(shape->size());
    back = axes;
    axes[1] = shape->size() - 1;
    for (std::size_t i = 2; i < axes.size(); ++i) axes[i] = i - 1;
    for (std::size_t i = 0; i < axes.size(); ++i) back[axes[i]] = i;
    result.line(fmt::format("planes = Transpose<perm={}>(x0)", axes));
    x = "planes";
  }
  std::string y = fmt::format("Conv<{}>({}, x1{})", convolution_text(node), x, site.has_input(2) ? ", x2" : "");
  if (!back.empty()) {
    result.line("of_planes = " + y);
    y = fmt::format("Transpose<perm={}>(of_planes)", back);
  }
  if (site.has_input(3)) {
    result.line("convolved = " + y);
    y = "Add(convolved, x3)";
    result.summary += ", Add";
  }
  if (!activation.empty()) {
    result.line("before = " + y);
    const auto parameter = [&](std::size_t i, float otherwise) {
      return parameters && i < parameters->size() ? (*parameters)[i] : otherwise;
    };
    const auto after = activation_of(result, activation, "before", site.type(0), parameter);
    if (!after) return site.no(fmt::format("its activation is '{}', which Graft does not know", activation));
    y = *after;
    result.summary += " and " + activation;
  }
  result.line("y0 = " + y);
  return result;
}

std::optional<Replacement> lower_matmul_n_bits(Site& site) {
  const onnx::Node& node = site.node();
  if (!site.is_real(0)) return site.no_type(0);
  const std::int64_t rows = node.int_or("N", 0);
  const std::int64_t columns = node.int_or("K", 0);
  const std::int64_t bits = node.int_or("bits", 4);
  const std::int64_t block = node.int_or("block_size", 0);
  if (node.int_or("weight_prepacked", 0) != 0)
    return site.no("its weights have the order of one GPU (weight_prepacked)");
  if (site.has_input(4)) return site.no("its input g_idx is used");
  if (bits != 2 && bits != 4 && bits != 8) return site.no(fmt::format("its bits are {}; allowed are 2, 4 and 8", bits));
  if (rows < 1 || columns < 1) return site.no("its N or K is not positive");
  constexpr std::int64_t least_block = 16;
  if (block < least_block || !std::has_single_bit(static_cast<std::uint64_t>(block))) {
    return site.no(
        fmt::format("its block_size is {}; it must be a power of 2 that is at least {}", block, least_block));
  }
  const std::int64_t blocks = columns / block + (columns % block == 0 ? 0 : 1);
  check_table({rows, blocks, block});
  const auto packed = site.ints(1);
  const auto scales = site.numbers(2);
  if (!packed || !scales) return site.no("its weights or scales are not constants");
  const std::int64_t in_byte = 8 / bits;
  const std::int64_t row_bytes = blocks * (block / in_byte);
  if (static_cast<std::int64_t>(packed->size()) != rows * row_bytes ||
      static_cast<std::int64_t>(scales->size()) != rows * blocks) {
    return site.no("its weights or scales do not have the size that N, K, bits and block_size give");
  }
  std::vector<double> zeros(static_cast<std::size_t>(rows * blocks),
                            static_cast<double>(std::int64_t{1} << (bits - 1)));
  if (site.has_input(3)) {
    if (site.type(3) == onnx::ElementType::u8) {
      const auto given = site.ints(3);
      if (!given || static_cast<std::int64_t>(given->size()) != rows * ((blocks + in_byte - 1) / in_byte)) {
        return site.no("its zero_points are not constants of the size that N, K, bits and block_size give");
      }
      const std::vector<std::int64_t> numbers = unpacked(*given, rows, blocks, bits);
      zeros.assign(numbers.begin(), numbers.end());
    } else {
      const auto given = site.numbers(3);
      if (!given || given->size() != zeros.size()) {
        return site.no("its zero_points are not constants of the size that N, K, bits and block_size give");
      }
      zeros = *given;
    }
  }
  const std::vector<std::int64_t> numbers = unpacked(*packed, rows, blocks * block, bits);
  std::vector<double> weights(static_cast<std::size_t>(rows * columns));
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      const auto in_block = static_cast<std::size_t>(row * blocks + column / block);
      const auto number = static_cast<double>(numbers[static_cast<std::size_t>(row * blocks * block + column)]);
      weights[static_cast<std::size_t>(column * rows + row)] = (number - zeros[in_block]) * (*scales)[in_block];
    }
  }
  Replacement result;
  const bool has_bias = site.has_input(5);
  result.constant("weights", onnx::TensorData::from_numbers(site.type(0), {columns, rows}, weights));
  result.line(fmt::format("{} = MatMul(x0, weights)", has_bias ? "product" : "y0"));
  if (has_bias) result.line("y0 = Add(product, x5)");
  result.summary = fmt::format("MatMul with the weights of {} bits in {}", bits, to_string(site.type(0)));
  return result;
}

}  // namespace graft::passes

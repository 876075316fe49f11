// QuantizeLinear and DequantizeLinear in the forms that TensorRT refuses or reads as i8: unsigned integers, zero points
// other than 0, and integers of 16 or 32 bits.
//
//   DequantizeLinear(constant)            becomes   DequantizeLinear(constant - zero) if that is i8, else real numbers
//   DequantizeLinear(MaxPool(q))          becomes   MaxPool(DequantizeLinear(q))
//   DequantizeLinear(QuantizeLinear(x))   becomes   Clip(Round(x / scale), low - zero, high - zero) * scale
//                                         or, u8 with the zero point 128, the same pair in i8 with the zero point 0,
//                                         or, if requested, a pair in i8 whose scale covers the same range
//   QuantizeLinear(x)                     becomes   Cast(Clip(Round(x / scale) + zero, low, high))
//   DequantizeLinear(q)                   becomes   (Cast(q) - zero) * scale
//   Cast(MaxPool(q))                      becomes   MaxPool(Cast(q)), where q is u8 or i8
//
// MaxPool stands for every node that moves or selects elements. Only integers below 2^24 are rounded, limited and
// shifted, which f32 represents exactly; the quotient and the product are the ones that ONNX defines.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "onnx/known_sizes.hpp"
#include "onnx/schema.hpp"
#include "passes/lowering/moved_data.hpp"
#include "passes/lowering/quantized_values.hpp"
#include "passes/lowering/refused_forms.hpp"

namespace graft::passes {
namespace {

using Numbers = std::vector<double>;
using Integers = std::vector<std::int64_t>;

/// The lowest opset in which QuantizeLinear and DequantizeLinear accept f16 and bf16 scales.
constexpr std::int64_t opset_of_16_bit_scales = 19;

constexpr std::string_view definition = "by definition: the formula of ONNX, with the same rounding";

bool is_quantize(const onnx::Node& node) { return node.op_type == "QuantizeLinear"; }
bool is_dequantize(const onnx::Node& node) { return node.op_type == "DequantizeLinear"; }

bool have_same_value(const onnx::Value* a, const onnx::Value* b) {
  if (a == b) return true;
  if (a == nullptr || b == nullptr) return false;
  const auto x = a->constant();
  const auto y = b->constant();
  return x && y && x->same_as(*y);
}

/// Returns the number of elements of a scale, or nothing if its shape is unknown.
std::optional<std::int64_t> count_of(const onnx::Value* scale) {
  if (scale == nullptr || !scale->shape || !onnx::has_known_sizes(*scale)) return std::nullopt;
  std::int64_t count = 1;
  for (const Dim& dim : *scale->shape) count *= dim.value();
  return count;
}

/// Returns whether a QuantizeLinear or DequantizeLinear has one scale and one zero point for the whole tensor.
bool has_one_scale(const onnx::Node& node) {
  return count_of(node.input(1)) == 1 && (node.input(2) == nullptr || count_of(node.input(2)) == 1);
}

/// Returns the zero points of a node, {0} if the node has no such input, or nothing if they are not constant.
std::optional<Integers> zeros_of(const onnx::Node& node) {
  return node.input(2) == nullptr ? Integers{0} : onnx::constant_ints(node.input(2));
}

bool are_all(const Integers& values, std::int64_t value) {
  return std::all_of(values.begin(), values.end(), [&](std::int64_t each) { return each == value; });
}

/// The layout of the scales and zero points of a QuantizeLinear or DequantizeLinear whose input is not a constant: one
/// for the whole tensor, or one for each channel.
class Parameters {
 public:
  /// Reads the layout from a QuantizeLinear or DequantizeLinear. Returns nothing, and stores the reason with site.no(),
  /// if there is a scale for each block of elements, or for each channel of a tensor of unknown rank.
  static std::optional<Parameters> of(Site& site, const onnx::Node& node) {
    Parameters parameters;
    if (node.int_or("block_size", 0) != 0) {
      static_cast<void>(site.no("it has a scale for each block of a tensor that is not a constant"));
      return std::nullopt;
    }
    if (has_one_scale(node)) return parameters;
    const Shape* shape = node.input(0) == nullptr ? nullptr : site.shapes().of(*node.input(0));
    if (shape == nullptr) {
      static_cast<void>(site.no("it has a scale for each channel of a tensor of unknown rank"));
      return std::nullopt;
    }
    const auto rank = static_cast<std::int64_t>(shape->size());
    const std::int64_t axis = node.int_or("axis", 1);
    const std::int64_t from_front = axis < 0 ? axis + rank : axis;
    if (from_front < 0 || from_front >= rank) {
      static_cast<void>(site.no(fmt::format("its axis is {}, and its input has {} dimensions", axis, rank)));
      return std::nullopt;
    }
    parameters.channels_.assign(static_cast<std::size_t>(rank - from_front), 1);
    parameters.channels_.front() = -1;
    return parameters;
  }

  /// Writes nodes that convert a scale or a zero point, the tensor `name`, to f32 and to a shape that broadcasts to the
  /// quantized tensor, and returns the name of the result. `value` supplies its type.
  [[nodiscard]] std::string in_f32(Replacement& result, const std::string& name, const onnx::Value& value) const {
    std::string real = result.in_f32(name, value.type.value_or(onnx::ElementType::f32));
    if (channels_.size() < 2) return real;
    result.line(fmt::format("{}_channels = Reshape({}, {})", name, real, result.ints("channels", channels_)));
    return name + "_channels";
  }

  /// Returns the shape with which `count` numbers, one for each channel, broadcast to the quantized tensor; empty if
  /// there is one scale for the whole tensor.
  [[nodiscard]] Integers dims_of(std::int64_t count) const {
    Integers dims = channels_;
    if (!dims.empty()) dims.front() = count;
    return dims;
  }

 private:
  Integers channels_;  ///< The shape with one number per channel; empty if there is one for the tensor.
};

onnx::ElementType type_of(const onnx::Value* value) {
  return value == nullptr ? onnx::ElementType::undefined : value->type.value_or(onnx::ElementType::undefined);
}

/// Returns the integer type of a QuantizeLinear (its output) or a DequantizeLinear (its input), or `undefined` if it is
/// unknown.
onnx::ElementType integers_of(const onnx::Node& node) {
  const onnx::Value* value = is_quantize(node) ? node.output() : node.input(0);
  const onnx::ElementType type = type_of(value);
  if (type != onnx::ElementType::undefined || node.domain.empty()) return type;
  // Nothing infers the types of operators of ONNX Runtime.
  return node.input(2) == nullptr ? onnx::ElementType::u8 : type_of(node.input(2));
}

/// Returns the floating-point type of the result of a DequantizeLinear: its declared type or, for operators of ONNX
/// Runtime, whose types are not inferred, the type of the scale.
onnx::ElementType real_type_of(const onnx::Node& dequantize) {
  const onnx::ElementType type = type_of(dequantize.output());
  return type == onnx::ElementType::undefined ? type_of(dequantize.input(1)) : type;
}

bool is_real(onnx::ElementType type) {
  return type == onnx::ElementType::f32 || type == onnx::ElementType::f16 || type == onnx::ElementType::bf16;
}

/// Returns, for each element of a constant of shape `dims` in row-major order, the index of its scale. Returns nothing
/// if the shape of the scales is unknown or does not match the constant.
std::optional<std::vector<std::size_t>> scale_indices(const onnx::Node& node, const Integers& dims) {
  const onnx::Value* scale = node.input(1);
  const auto scales = count_of(scale);
  if (!scales) return std::nullopt;
  std::vector<std::size_t> indices(static_cast<std::size_t>(product(dims)), 0);
  if (*scales == 1 && node.int_or("block_size", 0) == 0) return indices;
  const auto rank = static_cast<std::int64_t>(dims.size());
  const std::int64_t given = node.int_or("axis", 1);
  const std::int64_t axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis >= rank) return std::nullopt;
  const std::int64_t size = dims[static_cast<std::size_t>(axis)];
  std::int64_t inner = 1;
  for (std::int64_t i = axis + 1; i < rank; ++i) inner *= dims[static_cast<std::size_t>(i)];
  const std::int64_t block = node.int_or("block_size", 0);
  if (block < 0 || (block == 0 && *scales != size)) return std::nullopt;
  const std::int64_t blocks = block == 0 ? size : (size + block - 1) / block;
  if (block > 0 && (size == 0 || *scales * size != product(dims) * blocks)) return std::nullopt;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const std::int64_t position = at / inner % size;
    indices[i] = static_cast<std::size_t>(
        block == 0 ? position : (at / inner / size * blocks + position / block) * inner + at % inner);
  }
  return indices;
}

/// Returns the replacement of a DequantizeLinear of a constant: a DequantizeLinear from i8 with zero point 0 if all
/// elements minus their zero points fit i8, otherwise a floating-point constant or a Mul of one.
std::optional<Replacement> dequantize_constant(Site& site) {
  const onnx::Node& node = site.node();
  const auto data = site.constant(0);
  if (!data) return std::nullopt;
  check_table(data->dims);
  const auto integers = data->ints();
  const auto zeros = zeros_of(node);
  const auto indices = scale_indices(node, data->dims);
  if (!integers || !zeros || !indices) {
    return site.no("its scales and zero points are not constants that fit the constant that it dequantizes");
  }
  const auto zero_count = static_cast<std::int64_t>(zeros->size());
  if (zero_count != 1 && zero_count != count_of(node.input(1))) {
    return site.no("it has another number of zero points than of scales");
  }
  Integers centers(integers->size());
  for (std::size_t i = 0; i < centers.size(); ++i) {
    centers[i] = (*integers)[i] - (*zeros)[zero_count == 1 ? 0 : (*indices)[i]];
  }
  constexpr IntegerRange i8{-128, 127};
  const bool fits =
      std::all_of(centers.begin(), centers.end(), [&](std::int64_t n) { return n >= i8.low && n <= i8.high; });
  const onnx::ElementType real = real_type_of(node);
  const bool has_schema = real == onnx::ElementType::f32 || site.opset() >= opset_of_16_bit_scales;
  Replacement result;
  result.by_definition = "by definition: the differences of the integers and their zero points are the same";
  const Numbers numbers(centers.begin(), centers.end());
  // TensorRT takes weights of 8 bits, but no bias of 8 bits without axes, and no bias of 32 bits.
  if (fits && has_schema && !data->dims.empty() && node.int_or("block_size", 0) == 0 &&
      data->type != onnx::ElementType::i32) {
    result.constant("centered", onnx::TensorData::from_numbers(onnx::ElementType::i8, data->dims, numbers));
    result.line(fmt::format("y0 = DequantizeLinear<axis={}>(centered, x1)", node.int_or("axis", 1)));
    result.summary = "DequantizeLinear of i8 constants with the zero point 0";
    return result;
  }
  const auto scales = site.numbers(1);
  if (!scales) {
    if (count_of(node.input(1)) != 1) return site.no("its scales are computed, one for each channel or block");
    result.constant("centered", f32_tensor(data->dims, numbers));
    result.give("y0", real, fmt::format("Mul(centered, {})", result.in_f32("x1", site.type(1))));
    result.summary = "Mul of a constant and the scale";
    return result;
  }
  Numbers reals(centers.size());
  for (std::size_t i = 0; i < reals.size(); ++i) {
    reals[i] = static_cast<float>(numbers[i]) * static_cast<float>((*scales)[(*indices)[i]]);
  }
  result.constant("reals", onnx::TensorData::from_numbers(real, data->dims, reals));
  result.line("y0 = Identity(reals)");
  result.summary = fmt::format("a constant in {}", to_string(real));
  return result;
}

/// Returns scales for a QuantizeLinear to i8 with zero point 0 that represents the same range of real numbers as
/// `quantize` with its zero points `zeros`. Returns nothing if the scales of `quantize` are not constant or its
/// integers do not have 8 bits.
std::optional<Numbers> symmetric_scales(const onnx::Node& quantize, const Integers& zeros) {
  constexpr double i8_highest = 127;
  const auto constant = quantize.input(1) == nullptr ? std::nullopt : quantize.input(1)->constant();
  const auto scales = constant ? constant->numbers() : std::nullopt;
  if (!scales || !is_8_bit(integers_of(quantize))) return std::nullopt;
  const IntegerRange range = range_of(integers_of(quantize));
  Numbers symmetric;
  for (std::size_t i = 0; i < scales->size(); ++i) {
    const std::int64_t zero = zeros.size() == 1 ? zeros.front() : zeros[i];
    symmetric.push_back((*scales)[i] * static_cast<double>(std::max(zero - range.low, range.high - zero)) / i8_highest);
  }
  return symmetric;
}

/// Writes nodes that limit x to the range that the original integer type can represent, and returns the name of the
/// result. This is needed because i8 with zero point 0 and a larger scale also represents values outside this range;
/// quantizers rely on it and omit, for example, a Relu before a zero point at the lower limit.
std::string write_limits(Replacement& result, const Parameters& parameters, const onnx::Node& quantize,
                         const Integers& zeros) {
  const onnx::ElementType type = type_of(quantize.input(0));
  const IntegerRange range = range_of(integers_of(quantize));
  if (are_all(zeros, range.low)) {
    result.line("limited = Relu(x)");
    return "limited";
  }
  const Numbers scales = *quantize.input(1)->constant()->numbers();
  Numbers lows;
  Numbers highs;
  for (std::size_t i = 0; i < scales.size(); ++i) {
    const std::int64_t zero = zeros.size() == 1 ? zeros.front() : zeros[i];
    lows.push_back(static_cast<double>(range.low - zero) * scales[i]);
    highs.push_back(static_cast<double>(range.high - zero) * scales[i]);
  }
  const Integers dims = parameters.dims_of(static_cast<std::int64_t>(scales.size()));
  result.constant("lows", onnx::TensorData::from_numbers(type, dims, lows));
  result.constant("highs", onnx::TensorData::from_numbers(type, dims, highs));
  result.line("above = Max(x, lows)");
  result.line("limited = Min(above, highs)");
  return "limited";
}

/// Writes a QuantizeLinear of `x` to i8 with zero point 0 and the scale `scale_before`, and a DequantizeLinear to
/// output y0 with the scale `scale_after`.
void write_native_pair(Replacement& result, const onnx::Node& quantize, const std::string& x,
                       const std::string& scale_before, const std::string& scale_after) {
  const onnx::Value& scale = *quantize.input(1);
  const Integers dims = scale.shape ? onnx::known_sizes(*scale.shape).value_or(Integers{}) : Integers{};
  const Numbers zeros(static_cast<std::size_t>(product(dims)), 0);
  result.constant("zero", onnx::TensorData::from_numbers(onnx::ElementType::i8, dims, zeros));
  const std::string axis = fmt::format("axis={}", quantize.int_or("axis", 1));
  result.line(fmt::format("steps = QuantizeLinear<{}>({}, {}, zero)", axis, x, scale_before));
  result.line(fmt::format("y0 = DequantizeLinear<{}>(steps, {}, zero)", axis, scale_after));
}

std::string scales_text(const Numbers& before, const Numbers& after) {
  const auto [low, high] = std::minmax_element(after.begin(), after.end());
  if (after.size() == 1) return fmt::format("scale {:.4g} instead of {:.4g}", after.front(), before.front());
  return fmt::format("scales {:.4g} to {:.4g}", *low, *high);
}

/// Returns the replacement of a DequantizeLinear together with the QuantizeLinear that computes its input, or nothing
/// if there is no such pair or its types or parameters do not allow it.
std::optional<Replacement> round_trip(Site& site) {
  const onnx::Node& node = site.node();
  onnx::Node* quantize = site.producer(0);
  if (quantize == nullptr || !is_quantize(*quantize) || quantize->input(0) == nullptr || quantize->input(1) == nullptr)
    return std::nullopt;
  if (!have_same_value(quantize->input(2), node.input(2)) && zeros_of(*quantize) != zeros_of(node)) return std::nullopt;
  const auto zeros = zeros_of(node);
  const onnx::ElementType integers = integers_of(node);
  const onnx::ElementType real = real_type_of(node);
  const onnx::ElementType x_type = type_of(quantize->input(0));
  const bool one_scale = has_one_scale(*quantize) && has_one_scale(node);
  const bool same_axis = one_scale || quantize->int_or("axis", 1) == node.int_or("axis", 1);
  if (!zeros || !same_axis || range_of(integers).high == 0 || !is_real(real) || !is_real(x_type)) return std::nullopt;
  const auto before = Parameters::of(site, *quantize);
  if (!before) return std::nullopt;
  Replacement result;
  result.reads.emplace("x", quantize->input(0));
  result.together_with = {quantize};
  const bool is_u8_at_128 = integers == onnx::ElementType::u8 && are_all(*zeros, 128);
  const bool is_i8_at_0 = integers == onnx::ElementType::i8 && are_all(*zeros, 0);
  const bool has_schema =
      (real == onnx::ElementType::f32 && x_type == onnx::ElementType::f32) || site.opset() >= opset_of_16_bit_scales;
  if (has_schema && (is_u8_at_128 || is_i8_at_0)) {
    result.reads.emplace("x_scale", quantize->input(1));
    write_native_pair(result, *quantize, "x", "x_scale", "x1");
    result.summary = "QuantizeLinear and DequantizeLinear in i8 with the zero point 0";
    result.by_definition = "by definition: u8 with the zero point 128 is i8 with the zero point 0";
    return result;
  }
  if (has_schema && is_symmetric(site) && have_same_value(quantize->input(1), node.input(1))) {
    if (const auto scales = symmetric_scales(*quantize, *zeros)) {
      const auto given = quantize->input(1)->constant();
      result.constant("scale", onnx::TensorData::from_numbers(given->type, given->dims, *scales));
      write_native_pair(result, *quantize, write_limits(result, *before, *quantize, *zeros), "scale", "scale");
      result.summary =
          fmt::format("i8 with the zero point 0 and the same range, {}", scales_text(*given->numbers(), *scales));
      result.changes_result = true;
      return result;
    }
  }
  result.reads.emplace("x_scale", quantize->input(1));
  const std::string x = result.in_f32("x", x_type);
  result.line(fmt::format("quotient = Div({}, {})", x, before->in_f32(result, "x_scale", *quantize->input(1))));
  result.line("rounded = Round(quotient)");
  const IntegerRange range = range_of(integers);
  if (are_all(*zeros, zeros->front())) {
    const std::string low = result.number("low", static_cast<double>(range.low - zeros->front()));
    const std::string high = result.number("high", static_cast<double>(range.high - zeros->front()));
    result.line(fmt::format("steps = Clip(rounded, {}, {})", low, high));
  } else {
    const std::string zero = before->in_f32(result, "x2", *node.input(2));
    result.line(fmt::format("shifted = Add(rounded, {})", zero));
    const std::string low = result.number("low", static_cast<double>(range.low));
    const std::string high = result.number("high", static_cast<double>(range.high));
    result.line(fmt::format("limited = Clip(shifted, {}, {})", low, high));
    result.line(fmt::format("steps = Sub(limited, {})", zero));
  }
  result.give("y0", real, fmt::format("Mul(steps, {})", before->in_f32(result, "x1", *node.input(1))));
  result.summary = fmt::format("Div, Round, Clip and Mul in f32, exactly as in {}", to_string(integers));
  result.by_definition = definition;
  return result;
}

/// Returns the node of the same graph that computes input 0 of a node if it moves or selects elements (see
/// moved_inputs), otherwise null.
onnx::Node* movement_before(const onnx::Node& node) {
  const onnx::Value* value = node.input(0);
  onnx::Node* producer = value == nullptr || value->graph != node.graph ? nullptr : value->producer;
  return producer != nullptr && !moved_inputs(*producer).empty() ? producer : nullptr;
}

/// Returns another node of the same graph that reads `x` and otherwise equals `node` (the same operator, further inputs
/// and types), or null if none exists.
onnx::Node* find_same(const onnx::Node& node, const onnx::Value& x) {
  for (const onnx::Use& use : x.uses) {
    onnx::Node& other = *use.node;
    const bool is_same = use.index == 0 && &other != &node && other.graph == node.graph &&
                         other.op_type == node.op_type && other.domain == node.domain &&
                         other.inputs.size() == node.inputs.size() && other.output() != nullptr &&
                         std::equal(other.inputs.begin() + 1, other.inputs.end(), node.inputs.begin() + 1) &&
                         other.int_or("to", 0) == node.int_or("to", 0) &&
                         other.int_or("output_dtype", 0) == node.int_or("output_dtype", 0);
    if (is_same) return &other;
  }
  return nullptr;
}

/// Exchanges a node with the node before it, which only moves elements (movement_before). The node is then applied to
/// each moved input of that node instead of to its result. The name of the output stays the same.
void move_before(onnx::Node& node) {
  onnx::Graph& graph = *node.graph;
  onnx::Node& movement = *node.input(0)->producer;
  const std::size_t index = node.input(0)->output_index;
  const onnx::ElementType type = is_dequantize(node) ? real_type_of(node) : type_of(node.output());
  std::vector<onnx::Value*> inputs = movement.inputs;
  if (movement.is("Pad") && movement.input(2) == nullptr && movement.string_or("mode", "constant") == "constant") {
    if (inputs.size() < 3) inputs.resize(3);
    inputs[2] = graph.add_constant(movement.output()->name + "/padding",
                                   onnx::TensorData::from_numbers(type_of(inputs[0]), {}, {0}));
  }
  std::vector<std::size_t> moved = moved_inputs(movement);
  if (movement.is("Pad") && inputs.size() > 2 && inputs[2] != nullptr) moved.push_back(2);
  for (const std::size_t i : moved) {
    if (onnx::Node* same = find_same(node, *inputs[i])) {
      inputs[i] = same->output();
      continue;
    }
    std::vector<onnx::Value*> parameters = node.inputs;
    parameters.front() = inputs[i];
    onnx::Node* before =
        graph.add_node(node.op_type, parameters, {inputs[i]->name + "/" + node.op_type}, &node, node.domain);
    for (const auto& [name, attribute] : node.attributes) {
      before->attributes.emplace(name, onnx::copy_attribute(attribute));
    }
    before->output()->type = type;
    before->output()->shape = inputs[i]->shape;
    inputs[i] = before->output();
  }
  std::vector<onnx::Value*> outputs;
  for (const onnx::Value* output : movement.outputs) {
    onnx::Value* value = nullptr;
    if (outputs.size() == index) {
      value = node.output();
      graph.detach_output(node, 0);
    } else if (output != nullptr) {
      value = graph.make_value(output->name + "/" + node.op_type);
      value->type = type;
      value->shape = output->shape;
    }
    outputs.push_back(value);
  }
  onnx::Node* after = graph.add_node_with_outputs(movement.op_type, inputs, outputs, &node, movement.domain);
  after->name = movement.name;
  for (const auto& [name, attribute] : movement.attributes) {
    after->attributes.emplace(name, onnx::copy_attribute(attribute));
  }
  graph.remove_node(node);
  graph.topological_sort();  // A node that was found may stand after this one.
}

Replacement moved_before(const onnx::Node& node, const onnx::Node& movement) {
  Replacement result;
  result.summary = fmt::format("{} before {}", node.op_type, onnx::describe(movement));
  result.reason = fmt::format("TensorRT moves no tensors of {}", to_string(type_of(node.input(0))));
  result.by_definition = fmt::format("by definition: {} only moves or selects elements", movement.op_type);
  result.edit = move_before;
  return result;
}

/// Returns whether a DequantizeLinear reads a value, directly or after nodes that only move elements (see
/// moved_inputs).
bool is_dequantized(const onnx::Value& value) {
  std::vector<const onnx::Value*> waiting{&value};
  std::unordered_set<const onnx::Node*> seen;
  while (!waiting.empty()) {
    const onnx::Value* next = waiting.back();
    waiting.pop_back();
    for (const onnx::Use& use : next->uses) {
      const onnx::Node& reader = *use.node;
      if (is_dequantize(reader) && use.index == 0 && reader.graph == next->graph) return true;
      if (moved_inputs(reader).empty() || !seen.insert(&reader).second) continue;
      std::copy_if(reader.outputs.begin(), reader.outputs.end(), std::back_inserter(waiting),
                   [](const onnx::Value* output) { return output != nullptr; });
    }
  }
  return false;
}

}  // namespace

std::optional<Replacement> lower_dequantize_linear(Site& site) {
  const onnx::Node& node = site.node();
  if (node.input(0) == nullptr || node.input(1) == nullptr) return std::nullopt;
  if (site.constant(0)) return dequantize_constant(site);
  onnx::Node* movement = movement_before(node);
  if (movement != nullptr && has_one_scale(node)) return moved_before(node, *movement);
  if (!is_refused_quantization(node) && node.domain.empty()) return std::nullopt;
  if (auto pair = round_trip(site)) return pair;
  if (!site.why_not().empty()) return std::nullopt;
  const onnx::ElementType type = integers_of(node);
  const onnx::ElementType real = real_type_of(node);
  if ((!is_8_bit(type) && type != onnx::ElementType::i32) || !is_real(real)) {
    return site.no(fmt::format("it dequantizes {} to {}", to_string(type), to_string(real)));
  }
  const auto parameters = Parameters::of(site, node);
  if (!parameters) return std::nullopt;
  Replacement result;
  std::string steps = result.in_f32("x0", type);
  const auto zeros = zeros_of(node);
  if (!zeros || !are_all(*zeros, 0)) {
    result.line(fmt::format("centered = Sub({}, {})", steps, parameters->in_f32(result, "x2", *node.input(2))));
    steps = "centered";
  }
  result.give("y0", real, fmt::format("Mul({}, {})", steps, parameters->in_f32(result, "x1", *node.input(1))));
  result.summary = "Cast, Sub and Mul in f32";
  result.by_definition = definition;
  return result;
}

std::optional<Replacement> lower_quantize_linear(Site& site) {
  const onnx::Node& node = site.node();
  if (node.input(0) == nullptr || node.input(1) == nullptr || is_dequantized(*node.output())) return std::nullopt;
  const onnx::ElementType type = integers_of(node);
  if (!is_8_bit(type) || !site.is_real(0)) {
    return site.no(fmt::format("it quantizes {} to {}", to_string(site.type(0)), to_string(type)));
  }
  const auto parameters = Parameters::of(site, node);
  if (!parameters) return std::nullopt;
  Replacement result;
  const auto zeros = zeros_of(node);
  if (type == onnx::ElementType::i8 && zeros && are_all(*zeros, 0)) {  // It is only in the domain of ONNX Runtime.
    result.line(
        fmt::format("y0 = QuantizeLinear<axis={}>(x0, x1{})", node.int_or("axis", 1), site.has_input(2) ? ", x2" : ""));
    result.summary = "QuantizeLinear of ONNX";
    result.by_definition = definition;
    return result;
  }
  const std::string x = result.in_f32("x0", site.type(0));
  result.line(fmt::format("quotient = Div({}, {})", x, parameters->in_f32(result, "x1", *node.input(1))));
  const bool is_shifted = !zeros || !are_all(*zeros, 0);
  give_quantized(result, "y0", "quotient", is_shifted ? parameters->in_f32(result, "x2", *node.input(2)) : "", type);
  result.summary = fmt::format("Div, Round, Clip and Cast to {}", to_string(type));
  result.by_definition = definition;
  return result;
}

std::optional<Replacement> lower_cast_of_moved_bytes(Site& site) {
  const onnx::Node& node = site.node();
  if (!is_8_bit(site.type(0)) || !is_real(static_cast<onnx::ElementType>(node.int_or("to", 0)))) return std::nullopt;
  onnx::Node* movement = movement_before(node);
  if (movement == nullptr) return std::nullopt;
  const std::vector<std::size_t> moved = moved_inputs(*movement);
  // TensorRT builds a Gather of a constant table of u8.
  const bool is_constant = std::all_of(moved.begin(), moved.end(),
                                       [&](std::size_t i) { return movement->input(i)->constant().has_value(); });
  if (is_constant && site.type(0) == onnx::ElementType::u8) return std::nullopt;
  return moved_before(node, *movement);
}

}  // namespace graft::passes

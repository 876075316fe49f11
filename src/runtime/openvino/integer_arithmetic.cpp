// Rewrites the nodes between DequantizeLinear and QuantizeLinear into exact sums of integers in f32.
#include "runtime/openvino/integer_arithmetic.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "onnx/known_sizes.hpp"
#include "onnx/low_precision.hpp"
#include "onnx/schema.hpp"
#include "onnx/shape_inference.hpp"
#include "runtime/openvino/prepare.hpp"

namespace graft::runtime {
namespace {

/// The largest integer up to which integers, and sums of them in any order, are exact in f32.
constexpr std::int64_t largest_exact = std::int64_t{1} << 24;

using Dims = std::vector<std::int64_t>;

/// Integers that are known before the model runs.
struct WholeNumbers {
  Dims dims;
  std::vector<float> numbers;
};

/// The scales of a quantized tensor: real number = scale * step, where a step is the stored integer minus the zero
/// point. There is one scale, or one for each index along `axis`.
struct Scales {
  std::vector<float> numbers;
  std::int64_t axis = 0;
  [[nodiscard]] bool single() const { return numbers.size() == 1; }
};

/// The steps (integers minus zero point) and the scales from which a DequantizeLinear computes its output.
struct Operand {
  onnx::Value* steps = nullptr;  ///< The steps as an f32 tensor of the graph; null if they are in `known`.
  std::optional<WholeNumbers> known;
  Scales scales;
  std::int64_t largest = 0;  ///< An upper bound of the absolute values of the steps.
  std::optional<std::int64_t> rank;
};

std::int64_t product(Dims::const_iterator begin, Dims::const_iterator end) {
  return std::accumulate(begin, end, std::int64_t{1}, std::multiplies<>());
}

onnx::TensorData f32_tensor(const Dims& dims, const std::vector<float>& numbers) {
  onnx::TensorData tensor = onnx::TensorData::from_floats(numbers);
  tensor.dims = dims;
  return tensor;
}

std::optional<onnx::ElementType> type_of(const onnx::Value& value) {
  if (value.type) return value.type;
  const auto constant = value.constant();
  return constant ? std::optional(constant->type) : std::nullopt;
}

bool is_byte(const onnx::Value& value) {
  const auto type = type_of(value);
  return type == onnx::ElementType::i8 || type == onnx::ElementType::u8;
}

bool is_narrow_or_f32(std::optional<onnx::ElementType> type) {
  return type == onnx::ElementType::f32 || onnx::is_low_precision(type);
}

struct Limits {
  float lowest;
  float highest;
};

Limits limits_of(const onnx::Value& stored) {
  return type_of(stored) == onnx::ElementType::u8 ? Limits{0, 255} : Limits{-128, 127};
}

/// The constant parameters of a QuantizeLinear or DequantizeLinear node.
struct Parameters {
  Scales scales;
  std::vector<float> zero_points;  ///< Contains one zero point per scale.
  Dims dims;                       ///< The shape in which scales and zero points broadcast against the tensor.
};

std::vector<float> floats_of(const onnx::TensorData& tensor) {
  const auto numbers = tensor.numbers();
  return numbers ? std::vector<float>(numbers->begin(), numbers->end()) : std::vector<float>();
}

/// Returns the value of a constant, directly or after Identity and Squeeze nodes, which the functions of Graft's
/// operators insert. Returns nothing if the value is not constant.
std::optional<onnx::TensorData> constant_of(const onnx::Value& value) {
  const onnx::Node* node = value.producer;
  const bool hands_on = node != nullptr && (node->is("Identity") || node->is("Squeeze")) && node->input(0) != nullptr;
  if (!hands_on) return value.constant();
  auto constant = constant_of(*node->input(0));
  if (constant && node->is("Squeeze")) std::erase(constant->dims, 1);
  return constant;
}

/// Returns whether the tensor has this axis, with `count` elements along it. A malformed file may declare any axis.
bool has_channels(const onnx::Value& value, std::int64_t axis, std::size_t count) {
  if (const auto constant = value.constant()) {
    return axis >= 0 && std::cmp_less(axis, constant->dims.size()) &&
           std::cmp_equal(constant->dims[static_cast<std::size_t>(axis)], count);
  }
  if (!value.shape || axis < 0 || std::cmp_greater_equal(axis, value.shape->size())) return false;
  const Dim& dim = (*value.shape)[static_cast<std::size_t>(axis)];
  return dim.is_constant() && std::cmp_equal(dim.value(), count);
}

std::optional<Parameters> parameters_of(const onnx::Node& node) {
  const onnx::Value* scale = node.input(1);
  if (scale == nullptr || node.input(0) == nullptr || node.int_or("block_size", 0) != 0) return std::nullopt;
  const auto scales = constant_of(*scale);
  if (!scales || scales->dims.size() > 1 || !is_narrow_or_f32(scales->type)) return std::nullopt;
  Parameters found;
  found.scales.numbers = floats_of(*scales);
  if (found.scales.numbers.empty()) return std::nullopt;
  found.zero_points.assign(found.scales.numbers.size(), 0);
  if (const onnx::Value* zero_point = node.input(2)) {
    const auto constant = constant_of(*zero_point);
    if (!constant) return std::nullopt;
    found.zero_points = floats_of(*constant);
    if (found.zero_points.size() != found.scales.numbers.size()) return std::nullopt;
  }
  if (found.scales.single()) return found;
  const auto rank = node.input(0)->rank();
  std::int64_t axis = node.int_or("axis", 1);
  if (!rank) return std::nullopt;
  if (axis < 0) axis += *rank;
  if (!has_channels(*node.input(0), axis, found.scales.numbers.size())) return std::nullopt;
  found.scales.axis = axis;
  found.dims.assign(static_cast<std::size_t>(*rank - axis), 1);
  found.dims.front() = static_cast<std::int64_t>(found.scales.numbers.size());
  return found;
}

/// Returns the index of the scale that applies to an element.
std::size_t scale_index(const Dims& dims, const Scales& scales, std::size_t element) {
  if (scales.single()) return 0;
  const auto axis = dims.begin() + scales.axis;
  const auto inner = static_cast<std::size_t>(product(axis + 1, dims.end()));
  return element / inner % static_cast<std::size_t>(*axis);
}

/// Returns the stored integers, before the zero point is subtracted, if the tensor is a constant or a QuantizeLinear of
/// a constant.
std::optional<WholeNumbers> known_stored(const onnx::Value& stored) {
  if (const auto constant = stored.constant()) return WholeNumbers{constant->dims, floats_of(*constant)};
  const onnx::Node* node = stored.producer;
  if (node == nullptr || !node->is("QuantizeLinear") || node->input(0) == nullptr) return std::nullopt;
  const auto real = node->input(0)->constant();
  const auto parameters = parameters_of(*node);
  if (!real || !parameters) return std::nullopt;
  const Limits limits = limits_of(stored);
  WholeNumbers known{real->dims, floats_of(*real)};
  for (std::size_t i = 0; i < known.numbers.size(); ++i) {
    const std::size_t channel = scale_index(known.dims, parameters->scales, i);
    const float share = known.numbers[i] / parameters->scales.numbers[channel];
    const float step = std::isnan(share) ? 0 : std::nearbyint(share);
    known.numbers[i] = std::clamp(step + parameters->zero_points[channel], limits.lowest, limits.highest);
  }
  return known;
}

WholeNumbers transposed(const WholeNumbers& from, const Dims& order) {
  WholeNumbers to;
  std::vector<std::size_t> strides;
  for (const std::int64_t axis : order) {
    to.dims.push_back(from.dims[static_cast<std::size_t>(axis)]);
    strides.push_back(static_cast<std::size_t>(product(from.dims.begin() + axis + 1, from.dims.end())));
  }
  to.numbers.reserve(from.numbers.size());
  Dims index(to.dims.size(), 0);
  for (std::size_t i = 0; i < from.numbers.size(); ++i) {
    std::size_t source = 0;
    for (std::size_t axis = 0; axis < index.size(); ++axis)
      source += static_cast<std::size_t>(index[axis]) * strides[axis];
    to.numbers.push_back(from.numbers[source]);
    for (std::size_t axis = index.size(); axis-- > 0;) {
      if (++index[axis] < to.dims[axis]) break;
      index[axis] = 0;
    }
  }
  return to;
}

/// The value of SumAxis::axis for an operand whose elements all belong to one sum.
constexpr std::int64_t no_axis = -1;
/// Selects the elements of an operand that contribute to one sum: the elements with the same index along `axis`, and in
/// a ConvTranspose also in the same group of the first axis.
struct SumAxis {
  std::int64_t axis = 0;
  std::int64_t groups = 1;
};

/// Returns the largest sum of the absolute values of the elements that contribute to one sum. With SumAxis::axis ==
/// no_axis, all elements contribute to one sum.
std::int64_t largest_sum(const WholeNumbers& known, const SumAxis& sums) {
  if (sums.axis == no_axis) {
    double sum = 0;
    for (const float number : known.numbers) sum += std::abs(number);
    return static_cast<std::int64_t>(sum);
  }
  const auto axis = known.dims.begin() + sums.axis;
  const auto inner = static_cast<std::size_t>(product(axis + 1, known.dims.end()));
  const auto channels = static_cast<std::size_t>(*axis);
  const auto groups = static_cast<std::size_t>(sums.groups);
  std::vector<std::int64_t> found(channels * groups, 0);
  for (std::size_t i = 0; i < known.numbers.size(); ++i) {
    const std::size_t group = i * groups / known.numbers.size();
    found[group * channels + i / inner % channels] += static_cast<std::int64_t>(std::abs(known.numbers[i]));
  }
  return found.empty() ? 0 : *std::max_element(found.begin(), found.end());
}

/// The number of digits into which an integer is split, and their base. One digit means that the integer is not split.
struct Digits {
  int count = 1;
  std::int64_t base = 1;
};
constexpr std::array<Digits, 3> choices{{{1, 1}, {2, 16}, {4, 4}}};

/// Returns the digits of a number, the lowest first. All digits except the highest are between -base/2 and base/2 - 1.
/// `split` returns the number without its lowest digit, and that digit.
template <class T, class Floor>
std::vector<T> digits_of(T number, const Digits& digits, const Floor& split) {
  std::vector<T> found;
  for (int i = 1; i < digits.count; ++i) {
    auto [higher, digit] = split(number);
    found.push_back(digit);
    number = higher;
  }
  found.push_back(number);
  return found;
}

std::vector<WholeNumbers> digits_of_known(const WholeNumbers& known, const Digits& digits) {
  return digits_of(known, digits, [&](const WholeNumbers& number) {
    const auto base = static_cast<float>(digits.base);
    std::pair<WholeNumbers, WholeNumbers> split{number, number};
    for (std::size_t i = 0; i < number.numbers.size(); ++i) {
      const float higher = std::floor(number.numbers[i] / base + 0.5F);
      split.first.numbers[i] = higher;
      split.second.numbers[i] = number.numbers[i] - higher * base;
    }
    return split;
  });
}

/// The properties of a node that multiplies and adds (Conv, ConvTranspose, MatMul or Gemm).
struct Contraction {
  SumAxis left;
  SumAxis right;
  std::optional<std::int64_t> terms;  ///< The number of terms in one sum; empty if a size is not fixed.
  /// The shape to which the scales of the left side are reshaped, so that they broadcast against the result. A size of
  /// -1 is replaced by the number of scales.
  Dims left_factor;
  Dims right_factor;
  /// The number of times that the scales of the right side repeat: the number of groups of a ConvTranspose, otherwise
  /// 1.
  std::int64_t repeated = 1;
};

class IntegerArithmetic {
 public:
  explicit IntegerArithmetic(onnx::Model& model) : model_(model) {}

  bool run() {
    infer_shapes(model_);
    std::vector<onnx::Node*> products;
    std::vector<onnx::Node*> dequantize;
    std::vector<onnx::Node*> quantize;
    model_.graph().for_each_node([&](onnx::Node& node) {
      if (node.is("DequantizeLinear")) dequantize.push_back(&node);
      if (node.is("QuantizeLinear")) quantize.push_back(&node);
      if (has_trait(node, onnx::trait::weighted)) products.push_back(&node);
    });
    for (onnx::Node* node : dequantize) read(*node);
    for (onnx::Node* node : products) rewrite_product(*node);
    for (onnx::Node* node : dequantize) rewrite_dequantize(*node);
    for (onnx::Node* node : quantize) rewrite_quantize(*node);
    if (changed_) model_.graph().opset_imports[std::string(engine_domain)] = 1;
    return changed_;
  }

 private:
  // ---- reading operands ----

  void read(onnx::Node& node) {
    onnx::Value* stored = node.input(0);
    const auto parameters = parameters_of(node);
    if (!parameters || node.output() == nullptr || !is_narrow_or_f32(node.output()->type)) return;
    if (stored == nullptr || (!is_byte(*stored) && type_of(*stored) != onnx::ElementType::i32)) return;
    parameters_.emplace(&node, *parameters);
    if (!is_byte(*stored)) return;
    const Limits limits = limits_of(*stored);
    Operand operand;
    operand.scales = parameters->scales;
    operand.rank = stored->rank();
    for (const float zero_point : parameters->zero_points) {
      const float furthest = std::max(limits.highest - zero_point, zero_point - limits.lowest);
      operand.largest = std::max(operand.largest, static_cast<std::int64_t>(furthest));
    }
    operand.known = known_stored(*stored);
    if (operand.known) {
      std::vector<float>& numbers = operand.known->numbers;
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        numbers[i] -= parameters->zero_points[scale_index(operand.known->dims, parameters->scales, i)];
      }
    }
    operands_.emplace(node.output(), std::move(operand));
  }

  Operand* find(onnx::Value* value) {
    if (value == nullptr) return nullptr;
    const auto found = operands_.find(value);
    if (found != operands_.end()) {
      Operand& operand = found->second;
      if (!operand.known && operand.steps == nullptr) operand.steps = steps_of(*value->producer);
      return &operand;
    }
    return value->producer == nullptr ? nullptr : find_moved(*value->producer, *value);
  }

  /// Returns the Operand of the output of a node that rearranges elements, such as a Transpose: the integers of its
  /// input, rearranged in the same way. Returns null for other nodes, and for scales per channel unless the node is a
  /// Transpose.
  Operand* find_moved(onnx::Node& node, onnx::Value& value) {
    if (!has_trait(node, onnx::trait::rearranges)) return nullptr;
    const Operand* source = find(node.input(0));
    if (source == nullptr || (!source->scales.single() && !node.is("Transpose"))) return nullptr;
    Operand moved = *source;
    moved.rank = value.rank();
    if (node.is("Transpose")) {
      if (!source->rank) return nullptr;
      Dims order(static_cast<std::size_t>(*source->rank));
      std::iota(order.rbegin(), order.rend(), 0);
      order = node.ints("perm").value_or(order);
      if (moved.known) moved.known = transposed(*moved.known, order);
      moved.scales.axis = std::find(order.begin(), order.end(), source->scales.axis) - order.begin();
    } else if (moved.known) {
      moved.steps = known_or_steps(node, moved);
      moved.known.reset();
    }
    if (!moved.known) {
      std::vector<onnx::Value*> inputs = node.inputs;
      inputs[0] = moved.steps;
      moved.steps = copy_of(node, inputs, value.name)->output();
    }
    return &operands_.emplace(&value, std::move(moved)).first->second;
  }

  // ---- new nodes ----

  static onnx::Value* add(onnx::Node& before, std::string_view type, const std::vector<onnx::Value*>& inputs,
                          std::string_view domain = "") {
    const std::string hint = before.output() == nullptr ? "integer" : before.output()->name;
    onnx::Node* node = before.graph->add_node(std::string(type), inputs, {hint}, &before, std::string(domain));
    node->output()->type = onnx::ElementType::f32;
    return node->output();
  }

  static onnx::Value* cast(onnx::Node& before, onnx::Value* from, onnx::ElementType type) {
    onnx::Value* value = add(before, "Cast", {from});
    value->producer->attributes.emplace("to",
                                        onnx::NodeAttribute(onnx::AttributeData(static_cast<std::int64_t>(type))));
    value->type = type;
    return value;
  }

  static onnx::Value* in_f32(onnx::Node& before, onnx::Value* value) {
    return type_of(*value) == onnx::ElementType::f32 ? value : cast(before, value, onnx::ElementType::f32);
  }

  static onnx::Value* constant(onnx::Node& before, const Dims& dims, const std::vector<float>& numbers) {
    return before.graph->add_constant("integer", f32_tensor(dims, numbers));
  }

  static onnx::Value* fixed(onnx::Node& before, const Dims& dims, const std::vector<float>& numbers) {
    return add(before, engine_fixed, {constant(before, dims, numbers)}, engine_domain);
  }

  static onnx::Node* copy_of(onnx::Node& node, const std::vector<onnx::Value*>& inputs, const std::string& hint) {
    onnx::Node* copy = node.graph->add_node(node.op_type, inputs, {hint}, &node);
    for (const auto& [name, attribute] : node.attributes) copy->attributes.emplace(name, copy_attribute(attribute));
    copy->output()->type = onnx::ElementType::f32;
    return copy;
  }

  /// Replaces the node's output with `result`, which gets the same name and type.
  void replace(onnx::Node& node, onnx::Value* result) {
    onnx::Value& output = *node.output();
    if (output.type != onnx::ElementType::f32 && !is_byte(output)) result = cast(node, result, *output.type);
    node.graph->move_output(node, 0, *result->producer, result->output_index);
    node.graph->remove_node(node);
    changed_ = true;
  }

  // ---- DequantizeLinear and QuantizeLinear ----

  onnx::Value* steps_of(onnx::Node& node) {
    const Parameters& parameters = parameters_.at(&node);
    onnx::Value* steps = cast(node, node.input(0), onnx::ElementType::f32);
    const auto is_zero = [](float number) { return number == 0; };
    if (std::all_of(parameters.zero_points.begin(), parameters.zero_points.end(), is_zero)) return steps;
    return add(node, "Sub", {steps, constant(node, parameters.dims, parameters.zero_points)});
  }

  void rewrite_dequantize(onnx::Node& node) {
    const auto found = parameters_.find(&node);
    if (found == parameters_.end() || node.output()->is_unused()) return;
    const Parameters& parameters = found->second;
    const auto operand = operands_.find(node.output());
    if (operand != operands_.end() && operand->second.known) {
      make_constant(node, *operand->second.known, parameters.scales);
      return;
    }
    onnx::Value* steps =
        operand != operands_.end() && operand->second.steps != nullptr ? operand->second.steps : steps_of(node);
    replace(node, add(node, "Mul", {steps, fixed(node, parameters.dims, parameters.scales.numbers)}));
  }

  /// Replaces a DequantizeLinear with a constant: the known integers multiplied by the scales. Used for a
  /// DequantizeLinear that is also read by nodes other than rewritten products.
  void make_constant(onnx::Node& node, const WholeNumbers& known, const Scales& scales) {
    onnx::Value& output = *node.output();
    std::vector<double> real;
    real.reserve(known.numbers.size());
    for (std::size_t i = 0; i < known.numbers.size(); ++i) {
      real.push_back(known.numbers[i] * scales.numbers[scale_index(known.dims, scales, i)]);
    }
    const onnx::TensorData tensor = onnx::TensorData::from_numbers(*output.type, known.dims, real);
    onnx::Node* constant = node.graph->add_node("Constant", {}, {output.name}, &node);
    constant->attributes.emplace("value", onnx::NodeAttribute(onnx::AttributeData(tensor)));
    node.graph->move_output(node, 0, *constant, 0);
    node.graph->remove_node(node);
    changed_ = true;
  }

  void rewrite_quantize(onnx::Node& node) {
    const auto parameters = parameters_of(node);
    if (!parameters || node.output() == nullptr || !is_byte(*node.output())) return;
    onnx::Value* scale = fixed(node, parameters->dims, parameters->scales.numbers);
    onnx::Value* zero_point = constant(node, parameters->dims, parameters->zero_points);
    const auto type = static_cast<std::int64_t>(*node.output()->type);
    onnx::Value* stored = add(node, engine_quantize, {in_f32(node, node.input(0)), scale, zero_point}, engine_domain);
    stored->producer->attributes.emplace("to", onnx::NodeAttribute(onnx::AttributeData(type)));
    replace(node, stored);
  }

  // ---- products ----

  static std::optional<Contraction> convolution(const onnx::Node& node, const Operand& weight) {
    if (!weight.rank) return std::nullopt;
    const bool backwards = node.is("ConvTranspose");
    const std::int64_t groups = node.int_or("group", 1);
    Contraction found;
    found.left.axis = no_axis;
    found.right = backwards ? SumAxis{1, groups} : SumAxis{0, 1};
    found.repeated = backwards ? groups : 1;
    found.right_factor.assign(static_cast<std::size_t>(*weight.rank - 1), 1);
    found.right_factor.front() = -1;
    std::int64_t terms = 1;
    for (std::int64_t axis = 0; axis < *weight.rank; ++axis) {
      if (axis == found.right.axis) continue;
      const auto size = onnx::known_size(node.input(1), axis);
      if (!size) return found;
      terms *= *size;
    }
    found.terms = terms / found.repeated;
    return found;
  }

  static std::optional<Contraction> matrix_product(const onnx::Node& node, const Operand& left, const Operand& right) {
    if (!left.rank || !right.rank) return std::nullopt;
    const bool is_gemm = node.is("Gemm");
    const bool left_turned = is_gemm && node.int_or("transA", 0) != 0;
    const bool right_turned = is_gemm && node.int_or("transB", 0) != 0;
    Contraction found;
    const bool left_is_vector = *left.rank == 1;
    const bool right_is_vector = *right.rank == 1;
    found.left.axis = left_is_vector ? no_axis : *left.rank - (left_turned ? 1 : 2);
    found.right.axis = right_is_vector ? no_axis : *right.rank - (right_turned ? 2 : 1);
    found.left_factor = right_is_vector ? Dims{-1} : Dims{-1, 1};
    found.right_factor = {-1};
    const std::int64_t summed = left_turned ? 0 : *left.rank - 1;
    found.terms = onnx::known_size(node.input(0), summed);
    return found;
  }

  /// Returns whether the scales of the operand are equal within each sum, so that the scale can be applied to the sum.
  static bool common_scale(const Operand& operand, const SumAxis& sums) {
    return operand.scales.single() || operand.scales.axis == sums.axis;
  }

  static bool fits(const Contraction& found, const Operand& left, const Operand& right) {
    return common_scale(left, found.left) && common_scale(right, found.right) &&
           (left.scales.single() || right.scales.single());
  }

  /// Returns an upper bound of the absolute value of a sum of products of the known integers and the elements of
  /// `other`.
  static std::int64_t bound(const WholeNumbers& known, const SumAxis& sums, const Operand& other) {
    return largest_sum(known, sums) * other.largest;
  }

  /// The tensors into which one operand is split, lowest digit first: operand = digits[0] + base * digits[1] + ...
  struct Split {
    std::vector<onnx::Value*> digits;
    std::int64_t base = 1;
  };

  static Split split_known(onnx::Node& node, const Operand& operand, const SumAxis& sums, const Operand& other) {
    for (const Digits& choice : choices) {
      const std::vector<WholeNumbers> digits = digits_of_known(*operand.known, choice);
      const bool exact = std::all_of(digits.begin(), digits.end(), [&](const WholeNumbers& digit) {
        return bound(digit, sums, other) <= largest_exact;
      });
      if (!exact && &choice != &choices.back()) continue;
      Split split{{}, choice.base};
      for (const WholeNumbers& digit : digits) split.digits.push_back(constant(node, digit.dims, digit.numbers));
      return split;
    }
    return {};
  }

  static Split split_steps(onnx::Node& node, const Operand& operand, std::optional<std::int64_t> terms,
                           const Operand& other) {
    const auto exact = [&](const Digits& choice) {
      std::int64_t highest = operand.largest;
      for (int i = 1; i < choice.count; ++i) highest = highest / choice.base + 1;
      const std::int64_t largest_digit = choice.count == 1 ? operand.largest : std::max(highest, choice.base / 2);
      constexpr std::int64_t usual_terms = 4096;
      return terms.value_or(usual_terms) * largest_digit * other.largest <= largest_exact;
    };
    auto choice = std::find_if(choices.begin(), choices.end(), exact);
    if (choice == choices.end()) --choice;
    const auto base = static_cast<float>(choice->base);
    const std::vector<onnx::Value*> digits = digits_of(operand.steps, *choice, [&](onnx::Value* number) {
      onnx::Value* share = add(node, "Mul", {number, constant(node, {}, {1 / base})});
      onnx::Value* higher = add(node, "Floor", {add(node, "Add", {share, constant(node, {}, {0.5F})})});
      onnx::Value* removed = add(node, "Mul", {higher, constant(node, {}, {base})});
      return std::pair(higher, add(node, "Sub", {number, removed}));
    });
    return {digits, choice->base};
  }

  /// Returns the sum of the digits' results, weighted with powers of the base. The sum is computed in i32, because in
  /// f32 OpenVINO's CPU plugin would fuse the additions into the products' accumulation.
  static onnx::Value* combined(onnx::Node& node, const std::vector<onnx::Value*>& sums, std::int64_t base) {
    if (sums.size() == 1) return sums.front();
    onnx::Value* total = nullptr;
    std::int64_t weight = 1;
    for (onnx::Value* sum : sums) {
      onnx::Value* whole = cast(node, sum, onnx::ElementType::i32);
      if (weight != 1) {
        onnx::TensorData factor =
            onnx::TensorData::from_numbers(onnx::ElementType::i32, {}, {static_cast<double>(weight)});
        whole = add(node, "Mul", {whole, node.graph->add_constant("integer", std::move(factor))});
      }
      total = total == nullptr ? whole : add(node, "Add", {total, whole});
      whole->type = total->type = onnx::ElementType::i32;
      weight *= base;
    }
    return cast(node, total, onnx::ElementType::f32);
  }

  static onnx::Value* known_or_steps(onnx::Node& node, const Operand& operand) {
    return operand.known ? constant(node, operand.known->dims, operand.known->numbers) : operand.steps;
  }

  static onnx::Value* sum_of_products(onnx::Node& node, const Contraction& found, const Operand& left,
                                      const Operand& right) {
    const bool split_right = right.known || !left.known;
    const Operand& operand = split_right ? right : left;
    const Operand& other = split_right ? left : right;
    const SumAxis& sums = split_right ? found.right : found.left;
    onnx::Value* whole = known_or_steps(node, other);
    const Split split =
        operand.known ? split_known(node, operand, sums, other) : split_steps(node, operand, found.terms, other);
    std::vector<onnx::Value*> results;
    for (onnx::Value* digit : split.digits) {
      const std::vector<onnx::Value*> inputs = split_right ? std::vector{whole, digit} : std::vector{digit, whole};
      onnx::Node* copy = copy_of(node, inputs, node.output()->name);
      for (const char* factor : {"alpha", "beta"}) copy->attributes.erase(factor);
      results.push_back(copy->output());
    }
    return combined(node, results, split.base);
  }

  static onnx::Value* factor_of(onnx::Node& node, const Contraction& found, const Operand& left, const Operand& right) {
    const bool by_left = !left.scales.single();
    const std::vector<float>& many = by_left ? left.scales.numbers : right.scales.numbers;
    const float single = by_left ? right.scales.numbers.front() : left.scales.numbers.front();
    std::vector<float> factors;
    const std::int64_t repeated = many.size() == 1 ? 1 : found.repeated;
    for (std::int64_t i = 0; i < repeated; ++i) {
      for (const float scale : many) factors.push_back(single * scale);
    }
    if (factors.size() == 1) return fixed(node, {}, factors);
    Dims dims = by_left ? found.left_factor : found.right_factor;
    std::replace(dims.begin(), dims.end(), std::int64_t{-1}, static_cast<std::int64_t>(factors.size()));
    return fixed(node, dims, factors);
  }

  static onnx::Value* times(onnx::Node& node, onnx::Value* value, float factor) {
    return factor == 1 ? value : add(node, "Mul", {value, fixed(node, {}, {factor})});
  }

  /// Returns the bias that a Conv or Gemm adds, or null if the node has no bias.
  static onnx::Value* addend_of(onnx::Node& node, const Contraction& found) {
    onnx::Value* bias = node.input(2);
    if (bias == nullptr) return nullptr;
    bias = in_f32(node, bias);
    if (node.is("Gemm")) return times(node, bias, node.float_or("beta", 1));
    onnx::Value* shape = node.graph->add_constant("integer", onnx::TensorData::from_ints(found.right_factor));
    return add(node, "Reshape", {bias, shape});
  }

  void rewrite_product(onnx::Node& node) {
    constexpr std::int64_t optional_addend = 11;  // Input C of Gemm is optional from this opset on.
    if (node.output() == nullptr || !is_narrow_or_f32(node.output()->type)) return;
    if (node.is("Gemm") && node.graph->opset() < optional_addend) return;
    const Operand* left = find(node.input(0));
    const Operand* right = left == nullptr ? nullptr : find(node.input(1));
    if (right == nullptr) return;
    const bool is_matrix_product = node.is("MatMul") || node.is("Gemm");
    const auto found = is_matrix_product ? matrix_product(node, *left, *right) : convolution(node, *right);
    if (!found || !fits(*found, *left, *right)) return;
    onnx::Value* sum = sum_of_products(node, *found, *left, *right);
    onnx::Value* result = add(node, "Mul", {sum, factor_of(node, *found, *left, *right)});
    result = times(node, result, node.is("Gemm") ? node.float_or("alpha", 1) : 1);
    if (onnx::Value* addend = addend_of(node, *found)) result = add(node, "Add", {result, addend});
    replace(node, result);
  }

  onnx::Model& model_;
  std::unordered_map<const onnx::Node*, Parameters> parameters_;
  std::unordered_map<const onnx::Value*, Operand> operands_;
  bool changed_ = false;
};

}  // namespace

bool compute_integers(onnx::Model& model) {
  bool quantized = false;
  std::as_const(model.graph()).for_each_node([&](const onnx::Node& node) {
    quantized = quantized || node.is("QuantizeLinear") || node.is("DequantizeLinear");
  });
  return quantized && IntegerArithmetic(model).run();
}

}  // namespace graft::runtime

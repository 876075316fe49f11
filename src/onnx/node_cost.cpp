// Sizes are multiplied with a check for overflow, because the shapes of a file may be arbitrary.
#include "onnx/node_cost.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "onnx/known_sizes.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/schema.hpp"

namespace graft::onnx {
namespace {

using Count = std::optional<std::uint64_t>;

Count operator*(const Count& a, const Count& b) {
  std::uint64_t product = 0;
  if (!a || !b || __builtin_mul_overflow(*a, *b, &product)) return std::nullopt;
  return product;
}

Count operator+(const Count& a, const Count& b) {
  std::uint64_t sum = 0;
  if (!a || !b || __builtin_add_overflow(*a, *b, &sum)) return std::nullopt;
  return sum;
}

Count operator/(const Count& a, const Count& b) {
  if (!a || !b) return std::nullopt;
  return *a / std::max<std::uint64_t>(1, *b);
}

/// Returns sizes and numbers of elements. Dimensions that are not known count as the number that the constructor
/// receives.
class Sizes {
 public:
  explicit Sizes(Count unknown) : unknown_(unknown) {}

  [[nodiscard]] Count dim(const Dim& dim) const {
    return dim.is_constant() && dim.value() >= 0 ? Count(static_cast<std::uint64_t>(dim.value())) : unknown_;
  }
  [[nodiscard]] Count elements(const Shape& shape) const {
    Count count = 1;
    for (const Dim& each : shape) count = count * dim(each);
    return count;
  }
  [[nodiscard]] Count elements(const Value* value) const {
    return value == nullptr || !value->shape ? unknown_ : elements(*value->shape);
  }
  [[nodiscard]] Count size(const Value* value, std::int64_t axis) const {
    const auto known = known_size(value, axis);
    return known && *known >= 0 ? Count(static_cast<std::uint64_t>(*known)) : unknown_;
  }

 private:
  Count unknown_;
};

/// Returns whether Graft's operator of this name computes the node.
bool is_graft(const Node& node, std::string_view name) {
  const OperatorType* const type = find_operator_for(node).type;
  return type != nullptr && type->name == name;
}

/// Returns the data that the file stores for a value: a constant, or the default of an input; nothing for other values.
std::optional<TensorData> stored_data(const Value& value) {
  return value.initializer ? value.initializer : value.constant();
}

/// Returns the filters of a convolution, or null for other nodes. Each element of the convolution's output is a sum of
/// the products with one filter.
const Value* filters_of(const Node& node) {
  if (is_any_of(node, {"Conv", "ConvInteger", "DeformConv", "CausalConvWithState"})) return node.input(1);
  if (node.is("QLinearConv")) return node.input(3);
  const bool is_operator =
      is_graft(node, "Convolution") || is_graft(node, "DeformableConvolution") || is_graft(node, "CausalConvWithState");
  return is_operator ? node.input(1) : nullptr;
}

/// Returns the number of products in an Einsum of two operands, one for each combination of its indices, and 0 for one
/// operand. Returns nothing for an ellipsis, and for more operands, whose number of products depends on the order in
/// which a runtime contracts them.
Count einsum_products(const Node& node, const Sizes& sizes) {
  const NodeAttribute* const attribute = node.attribute("equation");
  const auto* const equation = attribute == nullptr ? nullptr : attribute->get<std::string>();
  if (equation == nullptr || node.inputs.size() > 2 || equation->find('.') != std::string::npos) return std::nullopt;
  if (node.inputs.size() < 2) return 0;
  std::map<char, Count> indices;
  std::size_t input = 0;
  std::int64_t axis = 0;
  for (const char c : equation->substr(0, equation->find("->"))) {
    if (c == ' ') continue;
    if (c == ',') {
      ++input;
      axis = 0;
      continue;
    }
    const Count size = sizes.size(node.input(input), axis++);
    Count& known = indices[c];
    // A dimension of size 1 is broadcast.
    known = known && size ? std::max(*known, *size) : (known ? known : size);
  }
  Count products = 1;
  for (const auto& [index, size] : indices) products = products * size;
  return products;
}

Count attention_products(const Node& node, const Sizes& sizes) {
  Count keys = sizes.size(node.input(1), -2);
  constexpr std::size_t past_key = 4;
  if (node.input(past_key) != nullptr) keys = keys + sizes.size(node.input(past_key), -2);
  return keys * (sizes.elements(node.input(0)) + sizes.elements(node.output()));
}

/// Returns whether the number of products of the operator depends on the algorithm of the runtime.
bool has_own_algorithm(const Node& node) {
  return is_any_of(node, {"DFT", "STFT", "LinearAttention"}) || is_graft(node, "MultiScaleDeformableAttention");
}

/// Returns whether ONNX or Graft has the operator.
bool is_known(const Node& node) {
  return (node.domain.empty() && find_schema(node.op_type) != nullptr) || find_operator_for(node);
}

/// Returns the constant input of the DequantizeLinear that computes `value`, or null for other values.
const Value* dequantized_constant(const Value& value) {
  const Node* producer = value.producer;
  if (producer == nullptr || !producer->is("DequantizeLinear") || producer->input(0) == nullptr) return nullptr;
  return stored_data(*producer->input(0)) ? producer->input(0) : nullptr;
}

/// Returns the constants that a node reads through one input: the input itself, or the inputs of a DequantizeLinear
/// that only converts a constant.
std::vector<const Value*> constants_read(const Value& input) {
  if (stored_data(input)) return {&input};
  if (dequantized_constant(input) == nullptr) return {};
  std::vector<const Value*> read;
  for (const Value* value : input.producer->inputs) {
    if (value != nullptr && stored_data(*value)) read.push_back(value);
  }
  return read;
}

/// Returns whether input `index` of a node is a scale or a zero point.
bool is_scale(const Node& node, std::size_t index) {
  if (is_any_of(node, {"QuantizeLinear", "DequantizeLinear"})) return index != 0;
  if (node.is("QLinearConv")) return index != 0 && index != 3 && index != 8;
  if (node.is("QLinearMatMul")) return index != 0 && index != 3;
  return is_any_of(node, {"MatMulInteger", "ConvInteger"}) && index > 1;
}

/// Returns the constant that holds the parameters (weights or a bias) which a node reads with input `index`, directly
/// or through a DequantizeLinear; null for other inputs.
const Value* parameters_read(const Node& node, std::size_t index) {
  const Value& input = *node.inputs[index];
  if (is_scale(node, index)) return nullptr;
  const Value* converted = dequantized_constant(input);
  if (converted == nullptr && !stored_data(input)) return nullptr;
  const Value* read = converted != nullptr ? converted : &input;
  switch (stored_data(*read)->type) {
    case ElementType::i64:
    case ElementType::u64:
    case ElementType::boolean:
    case ElementType::string: return nullptr;
    case ElementType::i32:
    case ElementType::u32:
    case ElementType::i16:
    case ElementType::u16: return converted != nullptr || node.is("QLinearConv") ? read : nullptr;
    default: return read;
  }
}

bool is_dequantized_constant(const Node& node) {
  return node.output() != nullptr && dequantized_constant(*node.output()) != nullptr;
}

Count bytes_of_tensor(const Value& value) {
  if (!value.type || !value.shape) return std::nullopt;
  const auto bits = static_cast<std::uint64_t>(std::max(0, bits_of(*value.type)));
  if (bits == 0) return std::nullopt;
  const Count all = Sizes({}).elements(*value.shape) * bits;
  return all ? Count((*all + 7) / 8) : std::nullopt;
}

Count bytes_of_tensors(const Node& node) {
  std::set<const Value*> tensors;  // a tensor that the node reads twice counts once
  for (const Value* input : node.inputs) {
    if (input != nullptr && constants_read(*input).empty()) tensors.insert(input);
  }
  for (const Value* output : node.outputs) {
    if (output != nullptr) tensors.insert(output);
  }
  Count bytes = 0;
  for (const Value* tensor : tensors) bytes = bytes + bytes_of_tensor(*tensor);
  return bytes;
}

std::uint64_t elements_of(const Value& constant) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, stored_data(constant)->element_count()));
}

}  // namespace

bool sums_products(const Node& node) {
  return filters_of(node) != nullptr || has_trait(node, trait::recurrent) ||
         is_any_of(node, {"ConvTranspose", "MatMul", "MatMulInteger", "QLinearMatMul", "Gemm", "Attention", "Einsum"});
}

std::optional<std::uint64_t> multiply_accumulates(const Node& node, std::optional<std::uint64_t> unknown_size) {
  const Sizes sizes(unknown_size);
  if (const Value* filters = filters_of(node)) {
    return sizes.elements(node.output()) * sizes.elements(filters) / sizes.size(filters, 0);
  }
  if (node.is("ConvTranspose")) {
    return sizes.elements(node.input(0)) * sizes.elements(node.input(1)) / sizes.size(node.input(1), 0);
  }
  if (is_any_of(node, {"MatMul", "MatMulInteger", "QLinearMatMul"})) {
    return sizes.elements(node.output()) * sizes.size(node.input(0), -1);
  }
  if (node.is("Gemm")) {
    const NodeAttribute* const transposed = node.attribute("transA");
    const auto* const is_transposed = transposed == nullptr ? nullptr : transposed->get<std::int64_t>();
    return sizes.elements(node.output()) *
           sizes.size(node.input(0), is_transposed != nullptr && *is_transposed != 0 ? 0 : 1);
  }
  if (has_trait(node, trait::recurrent)) {
    return sizes.size(node.input(0), 0) * sizes.size(node.input(0), 1) *
           (sizes.elements(node.input(1)) + sizes.elements(node.input(2)));
  }
  if (node.is("Attention")) return attention_products(node, sizes);
  if (node.is("Einsum")) return einsum_products(node, sizes);
  if (has_own_algorithm(node) || !is_known(node)) return std::nullopt;
  return 0;
}

NodeCost cost_of(const Node& node) {
  NodeCost cost;
  if (node.is("Constant") || is_dequantized_constant(node)) {
    return {.macs = 0, .parameters = 0, .weight_bytes = 0, .tensor_bytes = 0};
  }
  cost.macs = multiply_accumulates(node);
  cost.tensor_bytes = bytes_of_tensors(node);
  cost.parameters = 0;
  cost.weight_bytes = 0;
  std::set<const Value*> counted;
  std::set<const Value*> read;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == nullptr) continue;
    const Value* parameters = parameters_read(node, i);
    if (parameters != nullptr && counted.insert(parameters).second) *cost.parameters += elements_of(*parameters);
    for (const Value* constant : constants_read(*node.inputs[i])) {
      if (read.insert(constant).second) *cost.weight_bytes += stored_data(*constant)->bytes.size();
    }
  }
  return cost;
}

NetworkCost cost_of(const Model& model) {
  NetworkCost total;
  std::set<const Value*> counted;
  model.graph().for_each_node([&](const Node& node) {
    const Count macs = multiply_accumulates(node);
    const Count sum = macs + Count(total.macs);
    if (sum) {
      total.macs = *sum;
    } else {
      ++total.nodes_without_macs;
    }
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Value* parameters = node.inputs[i] == nullptr ? nullptr : parameters_read(node, i);
      if (parameters != nullptr && counted.insert(parameters).second) total.parameters += elements_of(*parameters);
    }
  });
  return total;
}

}  // namespace graft::onnx

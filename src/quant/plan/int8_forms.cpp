#include "quant/plan/int8_forms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "onnx/operator_node.hpp"
#include "onnx/schema.hpp"
#include "quant/plan/typed.hpp"

namespace graft::quant {
namespace {

using What = Int8Form::What;

bool is_constant(const onnx::Value* value) {
  return value != nullptr && (value->producer == nullptr ? value->initializer.has_value() && !value->is_input
                                                         : value->producer->is("Constant"));
}

Int8Form refused(std::string why) { return {What::none, std::move(why), std::nullopt, false}; }

bool pads_with_elements_or_zeros(const onnx::Node& node) {
  if (node.string_or("mode", "constant") != "constant") return true;
  const onnx::Value* value = node.input(2);
  if (value == nullptr) return true;
  const auto constant = value->constant();
  return constant && constant->scalar() == 0.0;
}

bool is_data_movement(const onnx::Node& node, EightBits type) {
  // TensorRT-RTX 1.7.1 pools f8 in f32. Of the other operators, only those that move elements were tried with f8.
  if (type == EightBits::f8 && is_any_of(node, {"MaxPool", "Pad", "Resize"})) return false;
  if (node.is("MaxPool")) return node.outputs.size() == 1;
  if (node.is("Resize")) return node.string_or("mode", "nearest") == "nearest";
  if (node.is("Pad")) return pads_with_elements_or_zeros(node);
  // TensorRT has layers for these operators, but they were not tried with int8.
  const bool untried = is_any_of(node, {"Compress", "GatherElements", "GatherND", "ReverseSequence"});
  return has_trait(node, onnx::trait::moves_data) && !untried;
}

std::vector<int> ranks_of(const onnx::Node& node) {
  std::vector<int> ranks;
  for (const onnx::Value* input : node.inputs) {
    ranks.push_back(input != nullptr && input->shape ? static_cast<int>(input->shape->size()) : -1);
  }
  return ranks;
}

bool has_row(const onnx::Node& node, const Operator& op, EightBits type) {
  const std::vector<int> ranks = ranks_of(node);
  return std::any_of(op.type().type_rows.begin(), op.type().type_rows.end(), [&](const TypeRow& row) {
    return row.formats[0] == Format(dtype_of(type), Layout::linear) && op.accepts(row, ranks);
  });
}

bool is_finite(const onnx::TensorData& tensor) {
  const auto numbers = tensor.numbers();
  return numbers && !numbers->empty() &&
         std::all_of(numbers->begin(), numbers->end(), [](double number) { return std::isfinite(number); });
}

/// Returns whether the node is a GlobalAveragePool or ReduceMean and the only reader of its input. If other nodes read
/// the input in f32, int8 gains nothing, because TensorRT-RTX then stores the input in f32.
bool is_mean_of_its_own(const onnx::Node& node) {
  return is_any_of(node, {"GlobalAveragePool", "ReduceMean"}) && node.input(0)->uses.size() == 1 &&
         node.input(0)->output_count == 0;
}

/// Returns whether the node is a Relu or LeakyRelu after a Graft plugin or a node that only moves elements. TensorRT
/// fuses an activation function into a convolution or a matrix product before it, but not into these nodes.
bool is_between_int8(const onnx::Node& node, const Int8Forms& forms) {
  const onnx::Node* maker = node.input(0) == nullptr ? nullptr : node.input(0)->producer;
  if (!is_any_of(node, {"LeakyRelu", "Relu"}) || maker == nullptr) return false;
  const What before = forms.at(maker).what;
  return before == What::graft || before == What::moves;
}

Int8Form weighted_form(const onnx::Node& node) {
  const auto weight = node.input(1) == nullptr ? std::nullopt : node.input(1)->constant();
  if (!weight) return refused("its weight is not a constant");
  if (!is_activation(node.input(0))) return refused("its input is a constant");
  if (weight->type != onnx::ElementType::f32 || !is_finite(*weight))
    return refused("its weight is not f32, or is not finite");
  const std::size_t rank = weight->dims.size();
  Int8Form form{What::weighted, {}, std::nullopt, false};
  if (node.is("Conv")) {
    form.axis = 0;
  } else if (node.is("Gemm")) {
    const bool plain = node.int_or("transA", 0) == 0 && node.float_or("alpha", 1) == 1;
    if (!plain) return refused("its attribute transA is not 0, or alpha is not 1");
    form.axis = node.int_or("transB", 0) != 0 ? 0 : 1;
  } else {
    if (rank != 2) return refused(fmt::format("its weight has {} dimensions", rank));
    form.axis = 1;
  }
  if (rank < 2) return refused(fmt::format("its weight has {} dimensions", rank));
  return form;
}

Int8Form operator_form(const onnx::Node& node, EightBits type) {
  const auto op = make_operator(node);
  if (op == nullptr) return refused(unknown_operator_reason());
  const std::string_view name = op->type().name;
  if (!is_activation(node.input(0))) return refused("it reads no f32 tensor");
  if (!has_row(node, *op, type)) return refused(fmt::format("{} has no {} form", name, to_string(type)));
  Int8Form form{What::graft, {}, std::nullopt, op->is_data_movement()};
  const std::optional<Int8Weight>& stored = op->type().int8_weight;
  if (stored && node.input(stored->input) != nullptr) {
    const auto weight = node.input(stored->input)->constant();
    if (!weight || !is_finite(*weight)) return refused("its weight is not a constant, or is not finite");
    form.axis = 0;
  }
  return form;
}

}  // namespace

bool is_activation(const onnx::Value* value) { return is_f32(value) && !is_constant(value); }

std::vector<std::size_t> activations_of(const onnx::Node& node) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (is_activation(node.inputs[i])) found.push_back(i);
  }
  return found;
}

Int8Form form_of(const onnx::Node& node, EightBits type, const Int8Forms& before) {
  if (!node.subgraphs().empty()) return refused("its sub-graphs are not quantized");
  if (node.domain == onnx_domain) return operator_form(node, type);
  if (!node.domain.empty()) return refused("it is an operator of another library");
  const auto is_rounded = [](const onnx::Value* value) {
    return value != nullptr && value->producer != nullptr && value->producer->is("DequantizeLinear");
  };
  if (std::any_of(node.inputs.begin(), node.inputs.end(), is_rounded)) {
    return refused("it reads DequantizeLinear: it is already quantized");
  }
  const std::vector<std::size_t> given = activations_of(node);
  if (given.empty() || !is_f32(node.output())) return {};
  if (node.is("ConvTranspose")) return refused("TensorRT-RTX always computes ConvTranspose in f32");
  if (has_trait(node, onnx::trait::weighted)) return weighted_form(node);
  if (is_data_movement(node, type) || is_between_int8(node, before)) return {What::moves, {}, std::nullopt, true};
  if (is_any_of(node, {"Add", "Sum"}) && given.size() == 2 && node.inputs.size() == 2) {
    return {What::adds, {}, std::nullopt, false};
  }
  const bool averages = node.is("AveragePool") || is_mean_of_its_own(node);
  if (averages && type == EightBits::int8) return {What::averages, {}, std::nullopt, false};
  return {};
}

}  // namespace graft::quant

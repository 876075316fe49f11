// Adds up the sizes of tensors, by the types in which they are stored.
#include "quant/plan/int8_cost.hpp"

#include <algorithm>

#include "onnx/operator_node.hpp"

namespace graft::quant {
namespace {

double elements_of(const onnx::Value& value) {
  double elements = 1;
  if (!value.shape) return elements;
  for (const Dim& dim : *value.shape) elements *= dim.is_constant() ? static_cast<double>(dim.value()) : 1.;
  return elements;
}

/// Returns the number of multiply-adds for one output element: the number of weights in the constant input `input`,
/// divided by its size along `axis`, the output channels. Returns 0 if that input is not a constant.
double products_per_element(const onnx::Node& node, std::size_t axis, std::size_t input = 1) {
  const auto weight = node.input(input) == nullptr ? std::nullopt : node.input(input)->constant();
  if (!weight || axis >= weight->dims.size()) return 0;
  return static_cast<double>(weight->element_count()) /
         static_cast<double>(std::max<std::int64_t>(1, weight->dims[axis]));
}

double products_of(const onnx::Node& node) {
  if (node.is("Conv")) return products_per_element(node, 0);
  if (node.is("ConvTranspose")) return products_per_element(node, 1);
  if (node.is("Gemm")) return products_per_element(node, node.int_or("transB", 0) != 0 ? 0 : 1);
  if (node.is("MatMul") && node.input(1) != nullptr && node.input(1)->constant()) return products_per_element(node, 1);
  const OperatorType* type = find_operator_for(node).type;
  return type != nullptr && type->int8_weight ? products_per_element(node, 0, type->int8_weight->input) : 0;
}

}  // namespace

Int8Cost cost_of(const onnx::Model& prepared, const Int8Plan& plan) {
  constexpr double wide = 4;
  Int8Cost cost;
  const auto width_of = [&](const onnx::Value& value) { return plan.tensors.contains(value.name) ? 1. : wide; };
  for (const Int8Node& planned : plan.nodes) {
    if (planned.kind == Int8Kind::follows || planned.kind == Int8Kind::moves || planned.kind == Int8Kind::none)
      continue;
    const onnx::Node& node = *prepared.graph().find_local(planned.node.id)->producer;
    const bool is_int8 = planned.kind == Int8Kind::computes;
    for (const onnx::Value* input : node.inputs) {
      if (input == nullptr || input->type != onnx::ElementType::f32) continue;
      const bool is_weight = is_int8 && planned.axis && input == node.input(1);
      cost.bytes_moved += elements_of(*input) * (is_weight ? 1. : width_of(*input));
    }
    for (const onnx::Value* output : node.outputs) {
      if (output != nullptr) cost.bytes_moved += elements_of(*output) * width_of(*output);
    }
    const double products = node.output() == nullptr ? 0 : products_of(node) * elements_of(*node.output());
    (is_int8 ? cost.int8_multiply_adds : cost.f32_multiply_adds) += products;
  }
  return cost;
}

}  // namespace graft::quant

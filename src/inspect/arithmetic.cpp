// Nodes that sum products are counted by their weights or inner sizes, all other nodes by their elements.
#include "inspect/arithmetic.hpp"

#include <algorithm>

#include "onnx/known_sizes.hpp"
#include "onnx/schema.hpp"

namespace graft::inspect {
namespace {

/// Returns the product of the constant dimensions.
double elements_of(const Shape& shape) {
  double elements = 1;
  for (const Dim& dim : shape) {
    if (dim.is_constant()) elements *= static_cast<double>(dim.value());
  }
  return elements;
}

double elements_of(const onnx::Value* value) {
  return value == nullptr || !value->shape ? 1 : elements_of(*value->shape);
}

double size_of(const onnx::Value* value, std::int64_t axis) {
  return static_cast<double>(onnx::known_size(value, axis).value_or(1));
}

double outputs_of(const onnx::Node& node) {
  double elements = 0;
  for (const onnx::Value* output : node.outputs) {
    if (output != nullptr) elements += elements_of(output);
  }
  return elements;
}

/// Returns the operations of a node that sums products, two for each product, or nothing for another node.
std::optional<double> sums_of_products(const onnx::Node& node) {
  const onnx::Value* weight = node.input(1);
  if (node.op_type == "ConvTranspose") return 2 * elements_of(node.input(0)) * elements_of(weight) / size_of(weight, 0);
  if (onnx::is_any_of(node, {"Conv", "ConvInteger", "DeformConv"}) || node.op_type == "Convolution") {
    return 2 * elements_of(node.output()) * elements_of(weight) / std::max(1.0, size_of(weight, 0));
  }
  if (node.is("QLinearConv")) {
    return 2 * elements_of(node.output()) * elements_of(node.input(3)) / std::max(1.0, size_of(node.input(3), 0));
  }
  if (onnx::is_any_of(node, {"MatMul", "MatMulInteger", "QLinearMatMul"})) {
    return 2 * elements_of(node.output()) * size_of(node.input(0), -1);
  }
  if (node.is("Gemm")) {
    return 2 * elements_of(node.output()) * size_of(node.input(0), node.int_or("transA", 0) != 0 ? 0 : 1);
  }
  if (has_trait(node, onnx::trait::recurrent)) {
    return 2 * size_of(node.input(0), 0) * size_of(node.input(0), 1) *
           (elements_of(node.input(1)) + elements_of(node.input(2)));
  }
  if (node.is("Attention")) return 4 * elements_of(node.input(0)) * size_of(node.input(1), -2);
  return std::nullopt;
}

}  // namespace

double arithmetic_of(const onnx::Node& node) {
  const std::vector<onnx::Graph*> inner_graphs = node.subgraphs();
  if (!inner_graphs.empty()) {
    double sum = 0;
    for (const onnx::Graph* inner : inner_graphs) {
      for (const onnx::Node* inside : inner->nodes()) sum += arithmetic_of(*inside);
    }
    return sum;
  }
  if (onnx::has_trait(node, onnx::trait::moves_data | onnx::trait::reads_shape) || node.is("Constant")) return 0;
  if (const std::optional<double> sums = sums_of_products(node)) return *sums;
  // The cost of a reduction is the number of its input elements; of Softmax and most other nodes, of output elements.
  return std::max(outputs_of(node), onnx::has_trait(node, onnx::trait::reduction) ? elements_of(node.input(0)) : 0);
}

std::optional<double> bytes_of(const onnx::Value& value) {
  if (!value.type || !value.shape) return std::nullopt;
  return elements_of(*value.shape) * onnx::bits_of(*value.type) / 8;
}

}  // namespace graft::inspect

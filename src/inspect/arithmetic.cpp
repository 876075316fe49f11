// Nodes that sum products are counted by their weights or inner sizes, all other nodes by their elements.
#include "inspect/arithmetic.hpp"

#include <algorithm>

#include "onnx/node_cost.hpp"
#include "onnx/schema.hpp"

namespace graft::inspect {
namespace {

/// Returns the product of the fixed dimensions; dynamic dimensions count as 1.
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

double outputs_of(const onnx::Node& node) {
  double elements = 0;
  for (const onnx::Value* output : node.outputs) {
    if (output != nullptr) elements += elements_of(output);
  }
  return elements;
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
  // Each product is also added, which makes two operations.
  if (onnx::sums_products(node)) return 2 * static_cast<double>(onnx::multiply_accumulates(node, 1).value_or(0));
  // The cost of a reduction is the number of its input elements; of Softmax and most other nodes, of output elements.
  return std::max(outputs_of(node), onnx::has_trait(node, onnx::trait::reduction) ? elements_of(node.input(0)) : 0);
}

std::optional<double> bytes_of(const onnx::Value& value) {
  if (!value.type || !value.shape) return std::nullopt;
  return elements_of(*value.shape) * onnx::bits_of(*value.type) / 8;
}

}  // namespace graft::inspect

// Splits operators that TensorFlow's optimizer (Grappler) fused from a product and the operators after it. Graft and
// TensorRT fuse nodes in their own way.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "import/tensorflow/node_converter.hpp"
#include "import/tensorflow/products.hpp"

namespace graft::tensorflow {
namespace {

/// Returns x * 0.5 * (1 + erf(x / sqrt(2))) or, if `is_approximate` is true, the formula with tanh that
/// gelu(approximate=True) computes.
onnx::Value* gelu(NodeConverter& node, onnx::Value* x, bool is_approximate) {
  const onnx::ElementType type = x->type.value_or(onnx::ElementType::f32);
  const auto number = [&](double value) { return node.scalar_of(value, type); };
  constexpr double root_of_2_by_pi = 0.7978845608028654;
  constexpr double cubic = 0.044715;
  onnx::Value* inner = nullptr;
  if (is_approximate) {
    onnx::Value* cube = node.add("Mul", {node.add("Mul", {x, x}), x});
    onnx::Value* sum = node.add("Add", {x, node.add("Mul", {cube, number(cubic)})});
    inner = node.add("Tanh", {node.add("Mul", {sum, number(root_of_2_by_pi)})});
  } else {
    inner = node.add("Erf", {node.add("Div", {x, number(std::sqrt(2.0))})});
  }
  onnx::Value* half = node.add("Mul", {x, number(0.5)});
  return node.add("Mul", {half, node.add("Add", {inner, number(1)})});
}

onnx::Value* activated(NodeConverter& node, const std::string& name, onnx::Value* x) {
  const onnx::ElementType type = x->type.value_or(onnx::ElementType::f32);
  if (name == "Relu" || name == "Elu" || name == "Tanh" || name == "Sigmoid") return node.add(name, {x});
  if (name == "Relu6") return node.add("Clip", {x, node.scalar_of(0, type), node.scalar_of(6, type)});
  if (name == "LeakyRelu") return node.add("LeakyRelu", {x}, {{"alpha", node.float_or("leakyrelu_alpha", 0.2F)}});
  if (name == "GeluApproximate" || name == "GeluExact") return gelu(node, x, name == "GeluApproximate");
  if (name == "_FusedHardSwish") return node.add("HardSwish", {x});
  node.fail(
      fmt::format("it is fused with {}; only BiasAdd, Add, FusedBatchNorm, Relu, Relu6, Elu, LeakyRelu, Tanh, Sigmoid, "
                  "GeluApproximate, GeluExact and _FusedHardSwish are supported",
                  name));
}

/// Returns the vector with a shape that broadcasts along the channels of x.
onnx::Value* along_channels(NodeConverter& node, onnx::Value* vector, const onnx::Value* x) {
  if (!node.text_or("data_format", "NHWC").starts_with("NC")) return vector;
  Ints axes;
  const std::size_t rank = node.known_rank(x, "the bias is added along its second axis");
  for (std::size_t i = 1; i + 1 < rank; ++i) axes.push_back(static_cast<std::int64_t>(i));
  return node.add("Unsqueeze", {vector, node.ints_of(axes)});
}

/// _FusedConv2D, _FusedDepthwiseConv2dNative, _FusedMatMul and _FusedBatchMatMulV2 become a product, followed by the
/// operators of `fused_ops`. The inputs are two factors, then the inputs of each fused operator.
void fused_product(NodeConverter& node) {
  onnx::Value* x = nullptr;
  if (node.op() == "_FusedConv2D") {
    x = convolved(node);
  } else if (node.op() == "_FusedDepthwiseConv2dNative") {
    x = depthwise_convolved(node);
  } else {
    x = multiplied(node);
  }
  std::size_t next = 2;
  for (const std::string& name : node.strings("fused_ops")) {
    if (name == "BiasAdd") {
      x = node.add("Add", {x, along_channels(node, node.input(next++), x)});
    } else if (name == "Add") {
      x = node.add("Add", {x, node.input(next++)});
    } else if (name == "FusedBatchNorm") {
      onnx::Value* scale = node.input(next);
      onnx::Value* offset = node.input(next + 1);
      onnx::Value* mean = node.input(next + 2);
      onnx::Value* variance = node.input(next + 3);
      next += 4;
      onnx::Value* epsilon = node.scalar_of(node.float_or("epsilon", 1e-4F), x->type.value_or(onnx::ElementType::f32));
      onnx::Value* factor = node.add("Div", {scale, node.add("Sqrt", {node.add("Add", {variance, epsilon})})});
      onnx::Value* summand = node.add("Sub", {offset, node.add("Mul", {mean, factor})});
      x = node.add("Mul", {x, along_channels(node, factor, x)});
      x = node.add("Add", {x, along_channels(node, summand, x)});
    } else {
      x = activated(node, name, x);
    }
  }
  node.give(x);
}

/// _FusedBatchNormEx becomes BatchNormalization, Add of a side input, and an activation.
void fused_norm(NodeConverter& node) {
  onnx::Value* x = normalized(node);
  if (node.int_or("num_side_inputs", 0) > 0) x = node.add("Add", {x, node.input(5)});
  const std::string name = node.text_or("activation_mode", "Identity");
  node.give(0, name == "Identity" ? x : activated(node, name, x));
  node.give(1, node.input(3));
  node.give(2, node.input(4));
}

}  // namespace

OperatorEntries fused_operators() {
  static const std::vector<OperatorEntry> entries =
      entries_of({{fused_product, "_FusedBatchMatMulV2 _FusedConv2D _FusedDepthwiseConv2dNative _FusedMatMul"},
                  {fused_norm, "_FusedBatchNormEx"}});
  return entries;
}

}  // namespace graft::tensorflow

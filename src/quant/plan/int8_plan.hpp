// Plans which nodes of a network compute in int8 or f8, which tensors are rounded, and which tensors share a scale.
// Names and comments that say int8 also mean f8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/node_ref.hpp"
#include "quant/plan/eight_bits.hpp"

namespace graft::quant {

enum class Int8Kind : std::uint8_t {
  computes,  ///< The node computes from int8: a convolution, a matrix product, a sum or a Graft operator.
  moves,     ///< The node passes int8 values on unchanged.
  /// The node computes in f32 on the unrounded result of an int8 node before it, because TensorRT fuses both into one
  /// kernel.
  follows,
  kept,  ///< The node computes in f32.
  none,  ///< The node has no f32 tensors.
};
/// Returns "int8" or "f8" (for computes and moves), "fused" (follows), "f32" (kept) or "" (none).
[[nodiscard]] std::string_view to_string(Int8Kind kind, EightBits type);

/// The decision for one node: whether it uses int8, and why not.
struct Int8Node {
  NodeRef node;  ///< The node; its id equals key_of(node).
  Int8Kind kind = Int8Kind::none;
  std::string reason;  ///< Why the node is kept in f32, or a remark on the node.
  /// Whether the node is kept in f32 because of its operator, attributes or neighbors, and not because of
  /// Int8Choice::kept.
  bool by_form = false;

  std::vector<std::size_t> inputs;  ///< The indices of the inputs that the node reads in int8.
  std::optional<std::size_t> axis;  ///< The channel axis of the constant weight, which is input 1.
  bool has_int8_form = false;       ///< Whether the node is a Graft operator with an int8 input and output.
  [[nodiscard]] bool has_weight() const { return axis.has_value() || has_int8_form; }
};

struct Int8Choice {
  EightBits type = EightBits::int8;
  std::map<std::string, std::string, std::less<>> kept = {};  ///< Maps the key_of a node to keep in f32 to the reason.
};

struct Int8Plan {
  EightBits type = EightBits::int8;
  std::vector<Int8Node> nodes;  ///< The nodes of the main graph in order, without Constant nodes.
  /// Maps each tensor that is quantized to the tensor that identifies its group: tensors of one group share a scale.
  std::map<std::string, std::string, std::less<>> tensors;
  /// All tensors that this plan quantizes, or that a plan with more nodes kept in f32 would quantize.
  std::vector<std::string> candidates;
};

/// Returns a copy of the model for plan_int8: the result of prepare_for_types, with scales after convolutions and
/// matrix products folded into their weights. For f8 the opset is at least 19, the first that has f8.
[[nodiscard]] onnx::Model prepare_for_int8(const onnx::Model& model, EightBits type = EightBits::int8);

/// Decides which nodes use int8 and which tensors are quantized.
///
/// Convolutions and matrix products with constant weights compute in int8, and their inputs are quantized. From there
/// the plan proceeds to the nodes before them: nodes that only move elements (max pooling, Concat, Transpose ...) pass
/// int8 on, with one scale for all their tensors; an Add stays in the kernel of the convolution that computes one of
/// its inputs, and reads the other input in int8; operators of Graft with an int8 form use it if all readers of their
/// outputs read int8. Nodes that TensorRT computes in f32 anyway are not changed.
///
/// The evidence is NVIDIA's documentation of explicit quantization and the layer information of TensorRT-RTX 1.7.1
/// (compute capability 8.9): Conv in 1-D to 3-D, with groups and depthwise, Gemm and MatMul read Int8; ConvTranspose
/// and most of AveragePool between Q and DQ read Float; pointwise nodes, and Softmax, become part of the kernel before
/// Q. In f8 the result was the same for Conv, Gemm and MatMul, but pools read Float, so they do not pass on f8.
/// docs/decisions/0012_where_int8_is_placed.md has the details.
[[nodiscard]] Int8Plan plan_int8(const onnx::Model& prepared, const Int8Choice& choice = {});

/// The step size (scale) of each tensor in Int8Plan::tensors, by tensor name.
using Int8Scales = std::map<std::string, float, std::less<>>;

struct Int8Model {
  onnx::Model model;
  std::size_t quantized_tensors = 0;
};

/// Returns the prepared model with QuantizeLinear and DequantizeLinear inserted as planned. Weights are int8 with a
/// scale for each channel, and biases stay f32. A tensor is quantized once for all nodes that read it in int8; other
/// nodes read the f32 tensor. Nodes kept in f32 have the reason in their metadata entry `graft.precision`. Throws Error
/// (internal) if `scales` lacks a tensor.
[[nodiscard]] Int8Model place_int8(const onnx::Model& prepared, const Int8Plan& plan, const Int8Scales& scales);

/// A constant in 8 bits, with one scale for each channel. The scale maps the largest absolute value of the channel to
/// the largest number of the type.
struct QuantizedWeight {
  onnx::TensorData steps;
  std::vector<float> scales;
};
[[nodiscard]] QuantizedWeight quantize_weight(const onnx::TensorData& weight, std::size_t axis, EightBits type);

}  // namespace graft::quant

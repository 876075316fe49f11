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
  computes,  ///< The node computes from int8: a convolution, a matrix product, a sum, an operator of Graft.
  moves,     ///< The node passes int8 on as it is.
  /// The node computes in f32 on the result of an int8 node, before that is stored: TensorRT makes one kernel of both.
  follows,
  kept,  ///< The node computes in f32.
  none,  ///< The node has no f32 tensors.
};
/// Returns "int8" or "f8" (computes and moves), "fused", "f32" or "".
[[nodiscard]] std::string_view to_string(Int8Kind kind, EightBits type);

/// The plan of a node.
struct Int8Node {
  NodeRef node;  ///< The node; its id is key_of.
  Int8Kind kind = Int8Kind::none;
  std::string reason;  ///< Why the node stays in f32, or a remark on it.
  /// Whether the node stays in f32 because of its form or its neighbors, and not because of Int8Choice::kept.
  bool by_form = false;

  std::vector<std::size_t> inputs;  ///< The inputs that the node reads in int8.
  std::optional<std::size_t> axis;  ///< The axis of the channels in the constant weight, input 1.
  bool has_int8_form = false;       ///< Whether the node has an int8 input and output: an operator of Graft.
  [[nodiscard]] bool has_weight() const { return axis.has_value() || has_int8_form; }
};

struct Int8Choice {
  EightBits type = EightBits::int8;
  std::map<std::string, std::string, std::less<>> kept = {};  ///< Nodes that stay in f32, by key_of, and why.
};

struct Int8Plan {
  EightBits type = EightBits::int8;
  std::vector<Int8Node> nodes;  ///< The nodes of the main graph, in its order; without Constant.
  /// Tensors that are rounded to int8, and the tensor whose name stands for the scale that they share.
  std::map<std::string, std::string, std::less<>> tensors;
  /// Every tensor that this plan, or one with more nodes in f32, may round.
  std::vector<std::string> candidates;
};

/// Returns a copy in the form that is planned and placed: like prepare_for_types, with scales after a convolution or a
/// matrix product folded into its weights. For f8 the operator set is at least 19, the first that has it.
[[nodiscard]] onnx::Model prepare_for_int8(const onnx::Model& model, EightBits type = EightBits::int8);

/// Plans int8. Convolutions and matrix products with constant weights compute in int8, and the tensors that they read
/// are rounded to it. Going back from there: nodes that only move elements (pooling by maximum, concatenation,
/// transposition ...) pass int8 on, with one scale for all their tensors; a sum keeps the convolution before it in the
/// same kernel and reads the other side in int8; operators of Graft with an int8 form read and write it if all their
/// readers read it. Nodes that TensorRT computes in f32 anyway stay as they are.
///
/// The evidence is NVIDIA's documentation of explicit quantization and the log of layers of TensorRT-RTX 1.7.1 (compute
/// capability 8.9): Conv in 1-D to 3-D, with groups and depthwise, Gemm and MatMul read Int8; ConvTranspose and most of
/// AveragePool between Q and DQ read Float; pointwise nodes, and Softmax, become part of the kernel before Q. In f8 the
/// log showed the same for Conv, Gemm and MatMul, and pools in Float: there they do not move f8.
/// docs/decisions/0012_where_int8_is_placed.md has the details.
[[nodiscard]] Int8Plan plan_int8(const onnx::Model& prepared, const Int8Choice& choice = {});

/// The size of one step of int8, by the name in Int8Plan::tensors.
using Int8Scales = std::map<std::string, float, std::less<>>;

struct Int8Model {
  onnx::Model model;
  std::size_t quantized_tensors = 0;
};

/// Returns the prepared model with QuantizeLinear and DequantizeLinear as planned: weights are int8 with a scale for
/// each channel, biases stay f32, a tensor is rounded once for all nodes that read it in int8. Nodes that read it in
/// f32 read it unrounded. Nodes in f32 carry their reason as metadata `graft.precision`. Throws Error (internal) for a
/// missing scale.
[[nodiscard]] Int8Model place_int8(const onnx::Model& prepared, const Int8Plan& plan, const Int8Scales& scales);

/// A constant in 8 bits, with one scale for each channel of the axis: the largest number of a channel becomes the
/// type's largest.
struct QuantizedWeight {
  onnx::TensorData steps;
  std::vector<float> scales;
};
[[nodiscard]] QuantizedWeight quantize_weight(const onnx::TensorData& weight, std::size_t axis, EightBits type);

}  // namespace graft::quant

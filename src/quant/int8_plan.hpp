// What of a network becomes int8 or f8: which nodes compute in it, which tensors are rounded to it, which share a
// scale. Where names and comments say int8, the same holds for f8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/node_ref.hpp"
#include "quant/eight_bits.hpp"

namespace graft::quant {

enum class Int8Kind : std::uint8_t {
  computes,  ///< From int8: a convolution, a matrix product, a sum, an operator of Graft.
  moves,     ///< It gives int8 on as it is.
  follows,   ///< In f32 on what an int8 node gives, before that is stored: TensorRT makes one kernel of both.
  kept,      ///< In f32.
  none,      ///< It has no f32 tensors.
};
/// "int8" or "f8", the same, "fused", "f32", "".
[[nodiscard]] std::string_view to_string(Int8Kind kind, EightBits type);

/// What becomes of a node.
struct Int8Node {
  NodeRef node;  ///< Its id is key_of.
  Int8Kind kind = Int8Kind::none;
  std::string reason;    ///< Why it stays in f32, or what is to be known of it.
  bool by_form = false;  ///< It stays for what it is or where it stands, not because of Int8Choice::kept.

  std::vector<std::size_t> inputs;  ///< Those that it reads in int8.
  std::optional<std::size_t> axis;  ///< Of the channels in its constant weight, which is input 1.
  bool has_int8_form = false;       ///< It takes and gives int8 itself: an operator of Graft.
  [[nodiscard]] bool has_weight() const { return axis.has_value() || has_int8_form; }
};

struct Int8Choice {
  EightBits type = EightBits::int8;
  std::map<std::string, std::string, std::less<>> kept = {};  ///< Nodes that stay in f32, by key_of, and why.
};

struct Int8Plan {
  EightBits type = EightBits::int8;
  std::vector<Int8Node> nodes;  ///< Of the main graph, in its order; without Constant.
  /// Tensors that are rounded to int8, and under which tensor's name they have a scale in common.
  std::map<std::string, std::string, std::less<>> tensors;
  /// Every tensor that this plan or one with more nodes in f32 may round.
  std::vector<std::string> candidates;
};

/// A copy in the form that is planned and placed: as prepare_for_types, and scales after a convolution or a matrix
/// product are part of its weights. For f8 in operator set 19 at least, the first that has it.
[[nodiscard]] onnx::Model prepare_for_int8(const onnx::Model& model, EightBits type = EightBits::int8);

/// Convolutions and matrix products with constant weights compute in int8, and what they read is rounded to it.
/// Going back from there: nodes that only move elements (pooling by maximum, concatenation, transposition ...) pass
/// int8 on, with one scale for all they touch; a sum keeps the convolution before it in the same kernel and reads the
/// other side in int8; operators of Graft with an int8 form take and give it where all that read them want it. What
/// TensorRT computes in f32 anyway stays as it is.
///
/// As NVIDIA's documentation of explicit quantization says, and as TensorRT-RTX 1.7.1 showed in its log of layers
/// (compute capability 8.9): Conv in 1-D to 3-D, with groups and depthwise, Gemm and MatMul read Int8; ConvTranspose
/// and most of AveragePool between Q and DQ read Float; what is pointwise, Softmax too, goes into the kernel before Q.
/// In f8 it showed the same of Conv, Gemm and MatMul, and pools in Float: there they do not move f8.
/// docs/decisions/0012_where_int8_is_placed.md has the evidence.
[[nodiscard]] Int8Plan plan_int8(const onnx::Model& prepared, const Int8Choice& choice = {});

/// The step of each tensor's int8, by the name in Int8Plan::tensors.
using Int8Scales = std::map<std::string, float, std::less<>>;

struct Int8Model {
  onnx::Model model;
  std::size_t quantized_tensors = 0;
};

/// The prepared model with QuantizeLinear and DequantizeLinear as planned: weights are int8 with a scale for each
/// channel, biases stay f32, a tensor is rounded once for all who read it in int8. Who reads it in f32 gets it as it
/// was. Nodes of f32 carry their reason as metadata `graft.precision`. Throws Error (internal) for a missing scale.
[[nodiscard]] Int8Model place_int8(const onnx::Model& prepared, const Int8Plan& plan, const Int8Scales& scales);

/// A constant in 8 bits and what 1 is worth, one scale for each channel of the axis: its largest is the type's largest.
struct QuantizedWeight {
  onnx::TensorData steps;
  std::vector<float> scales;
};
[[nodiscard]] QuantizedWeight quantize_weight(const onnx::TensorData& weight, std::size_t axis, EightBits type);

}  // namespace graft::quant

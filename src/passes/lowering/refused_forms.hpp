// Forms of standard operators that TensorRT refuses or computes wrongly, as far as the node alone shows them.
// src/inspect reports these forms, and the lowerings replace them. Each function expects a node of the operator that it
// names.
#pragma once

#include <cstdint>
#include <vector>

#include "onnx/model.hpp"

namespace graft::passes {

/// The largest K that TensorRT's builder accepts for a TopK.
inline constexpr std::int64_t largest_k = 3840;

/// Returns whether the K of a TopK is a constant above largest_k.
[[nodiscard]] bool has_large_k(const onnx::Node& top_k);
/// Returns whether the attribute antialias of a Resize is 1. (In mode nearest the attribute has no effect.)
[[nodiscard]] bool has_antialias(const onnx::Node& resize);
/// Returns whether a Resize has a keep_aspect_ratio_policy other than stretch.
[[nodiscard]] bool keeps_aspect_ratio(const onnx::Node& resize);
/// Returns whether the coordinate_transformation_mode of a Resize is tf_crop_and_resize or half_pixel_symmetric.
[[nodiscard]] bool has_refused_coordinates(const onnx::Node& resize);
/// Returns whether has_antialias, keeps_aspect_ratio or has_refused_coordinates returns true for a Resize.
[[nodiscard]] bool is_refused_resize(const onnx::Node& resize);
/// Returns whether a pooling has a dilation other than 1.
[[nodiscard]] bool has_dilations(const onnx::Node& pooling);
/// Returns whether the output Indices of a MaxPool is used.
[[nodiscard]] bool returns_indices(const onnx::Node& max_pool);
/// Returns whether an LpPool has a p other than 1 and 2.
[[nodiscard]] bool has_other_norm(const onnx::Node& lp_pool);
/// Returns whether more than the first output of an Attention is used.
[[nodiscard]] bool returns_more_than_attention(const onnx::Node& attention);
/// Returns whether an Attention has the input nonpad_kv_seqlen or a window, both of which TensorRT's parser ignores.
[[nodiscard]] bool has_ignored_masks(const onnx::Node& attention);
/// Returns whether an Attention has both a mask and is_causal = 1.
[[nodiscard]] bool is_masked_and_causal(const onnx::Node& attention);
/// Returns whether the mask of an Attention with inputs of rank 4 is known to be shorter than its keys.
[[nodiscard]] bool has_short_mask(const onnx::Node& attention);
/// Returns whether an Attention has the attribute softmax_precision.
[[nodiscard]] bool has_softmax_precision(const onnx::Node& attention);
/// Returns whether a MultiHeadAttention has a scale of 0, which ONNX Runtime treats as absent, or a negative scale.
/// TensorRT multiplies queries and keys by the square root of the scale, which does not exist or is wrong for these
/// values.
[[nodiscard]] bool has_scale_without_root(const onnx::Node& multi_head_attention);
/// Returns whether a MultiHeadAttention has the attribute mask_filter_value, which TensorRT refuses.
[[nodiscard]] bool has_mask_filter_value(const onnx::Node& multi_head_attention);
/// Returns whether the attribute `layout` of an LSTM, a GRU or an RNN is 1, so that the batch axis comes before the
/// time axis.
[[nodiscard]] bool is_batch_first(const onnx::Node& recurrent);
/// Returns whether the attribute input_forget of an LSTM is 1, so that its forget gate is 1 minus its input gate.
[[nodiscard]] bool couples_gates(const onnx::Node& lstm);
/// Returns whether the output Mean or InvStdDev of a LayerNormalization is used.
[[nodiscard]] bool returns_statistics(const onnx::Node& layer_normalization);
/// Returns whether a ScatterND or ScatterElements has a reduction other than "none".
[[nodiscard]] bool has_reduction(const onnx::Node& scatter);
/// Returns whether a MatMul has a first input of rank 1 and a second input of rank above 2.
[[nodiscard]] bool multiplies_vector_by_matrices(const onnx::Node& mat_mul);
/// Returns whether a Mod of floating-point numbers has fmod = 0.
[[nodiscard]] bool is_floored_real_mod(const onnx::Node& mod);
/// Returns whether the type of a node's input 0 is f16 or bf16.
[[nodiscard]] bool reads_half(const onnx::Node& node);
/// Returns whether the type of a node's input 0 is boolean.
[[nodiscard]] bool reads_booleans(const onnx::Node& node);
/// Returns whether the equation of an Einsum has uppercase letters.
[[nodiscard]] bool has_uppercase_subscripts(const onnx::Node& einsum);
/// Returns whether a ConvTranspose with these attributes has both a stride above 1 and a dilation above 1.
[[nodiscard]] bool is_strided_and_dilated(const std::vector<std::int64_t>& strides,
                                          const std::vector<std::int64_t>& dilations);
/// Returns whether TensorRT refuses a QuantizeLinear or a DequantizeLinear, or reads its unsigned integers as signed:
/// the integer type is neither i8 nor i4, a zero point is not the constant 0, or a DequantizeLinear reads a scalar
/// constant or elements selected from a constant.
[[nodiscard]] bool is_refused_quantization(const onnx::Node& node);
/// Returns whether a node is an operator for quantized integers of ONNX or ONNX Runtime, such as QuantizeLinear,
/// QLinearConv and MatMulInteger.
[[nodiscard]] bool is_quantized_operator(const onnx::Node& node);
/// Returns whether the mode of a GridSample is linear, which opset 16 calls bilinear.
[[nodiscard]] bool is_bilinear(const onnx::Node& grid_sample);

}  // namespace graft::passes

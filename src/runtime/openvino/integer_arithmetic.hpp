// Quantized models are computed as a device does: products of integers, exactly.
#pragma once

#include <string_view>

#include "onnx/model.hpp"

namespace graft::runtime {

/// Rounds x / scale (f32) to the nearest integer, ties to even, adds the zero point, saturates to the type whose ONNX
/// code is its attribute `to`. NaN gives the zero point, as it does on a device. Inputs: x, scale, zero point; all f32.
inline constexpr std::string_view engine_quantize = "Quantize";
/// A constant that no optimization moves into the node before it or after it.
inline constexpr std::string_view engine_fixed = "Fixed";

/// OpenVINO 2026.4 would compute QuantizeLinear and DequantizeLinear by its low precision transformations. Measured
/// on a CPU without VNNI: a Conv in i8 halves the weights and rounds them again to fit 16-bit sums, which is off by 0.8
/// % of the sum, 73153 of 9290304 in a Conv of 64 channels; where it computes in f32, scales are multiplied into the
/// weights, and each product is rounded.
///
/// So QuantizeLinear and DequantizeLinear of i8 and u8 become nodes of our own. A Conv, ConvTranspose, MatMul or Gemm
/// that reads two DequantizeLinear multiplies and adds integers in f32, which is exact up to 2^24. Where sums may
/// be larger, the digits of one side are multiplied one by one, and added in i32. The sum, rounded to f32 once, is
/// multiplied by the product of the scales (f32), then bias is added (f32).
///
/// A ResNet-50 takes 1.5 to 1.9 times as long as in f32 (two cores): sums are written and read once more to be scaled,
/// and again to be rounded, where the plugin would add bias and ReLU to a convolution in place.
///
/// The tensors keep their names. Left alone: scales that are no constants or that one sum does not have in common,
/// blocks, other types than these two. Returns whether there was anything to do.
bool compute_integers(onnx::Model& model);

}  // namespace graft::runtime

// Computes quantized models with exact products of integers, as a device does.
#pragma once

#include <string_view>

#include "onnx/model.hpp"

namespace graft::runtime {

/// The operator that rounds x / scale (f32) to the nearest integer, ties to even, adds the zero point and saturates to
/// the type whose ONNX code is the attribute `to`. NaN becomes the zero point, as on a device. Inputs: x, scale, zero
/// point; all f32.
inline constexpr std::string_view engine_quantize = "Quantize";
/// The operator that holds a constant which no optimization may fold into the preceding or following node.
inline constexpr std::string_view engine_fixed = "Fixed";

/// DequantizeLinear(a), DequantizeLinear(b) -> Conv becomes Conv(a - zero point, b - zero point) -> Mul(scale a * scale
/// b) -> Add(bias), with integers in f32.
///
/// OpenVINO 2026.4 would compute QuantizeLinear and DequantizeLinear with its low precision transformations. On a CPU
/// without VNNI, they compute a Conv in i8 with halved weights, which are rounded again to fit 16-bit sums. In a
/// measured Conv of 64 channels, a sum of 9290304 was off by 73153 (0.8 %). Where OpenVINO computes in f32, it
/// multiplies the scales into the weights, and each product is rounded.
///
/// Therefore QuantizeLinear and DequantizeLinear of i8 and u8 become nodes of this engine. A Conv, ConvTranspose,
/// MatMul or Gemm that reads two DequantizeLinear nodes multiplies and adds integers in f32, which is exact up to 2^24.
/// Where sums may be larger, one side is split into digits, each digit is multiplied separately, and the results are
/// added in i32. The sum, rounded to f32 once, is multiplied by the product of the scales (f32), then the bias is added
/// (f32).
///
/// A ResNet-50 takes 1.5 to 1.9 times as long as in f32 (two cores): sums are written and read once more for the
/// scaling and once more for the rounding, while OpenVINO's CPU plugin would add bias and ReLU to a convolution in
/// place.
///
/// The tensors keep their names. Not rewritten: scales that are not constant or that differ within one sum, block
/// quantization, and types other than i8 and u8. Returns whether the model changed.
bool compute_integers(onnx::Model& model);

}  // namespace graft::runtime

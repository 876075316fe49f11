// Folds scales after a convolution or matrix product into its weights.
//
//   Mul(Conv(x, w, b), s)   becomes   Conv(x, s * w, s * b)
#pragma once

#include <cstddef>

#include "onnx/model.hpp"

namespace graft::quant {

/// Folds BatchNormalization, and Mul, Add, Sub and Div by constants per channel or for all channels, into the weights
/// and the bias of the Conv, ConvTranspose, Gemm or MatMul before them in the main graph. Does so only if no other node
/// reads the tensor between them or the weights. If a bias is needed, a Conv or Gemm gets one, and a MatMul gets an Add
/// after it. The layer's output takes the name of the last folded node's output. Returns the number of nodes that were
/// removed.
std::size_t fold_scales(onnx::Model& model);

}  // namespace graft::quant

// Folds scales after a convolution or matrix product into its weights.
//
//   Mul(Conv(x, w, b), s)   becomes   Conv(x, s * w, s * b)
#pragma once

#include <cstddef>

#include "onnx/model.hpp"

namespace graft::quant {

/// Folds BatchNormalization, and Mul, Add, Sub and Div by one number for each channel or for all, into the weights and
/// the bias of the Conv, ConvTranspose, Gemm or MatMul of the main graph before it, if nothing else reads the tensor
/// between them, or the weights. A Conv or Gemm gets a bias if it needs one, a MatMul an Add after it. The layer then
/// computes the tensor of the last scale, under its name. Returns the number of nodes that were removed.
std::size_t fold_scales(onnx::Model& model);

}  // namespace graft::quant

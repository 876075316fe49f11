// Scales after a convolution or matrix product become part of its weights.
#pragma once

#include <cstddef>

#include "onnx/model.hpp"

namespace graft::quant {

/// BatchNormalization, and Mul, Add, Sub and Div by one number for each channel or for all, after a Conv,
/// ConvTranspose, Gemm or MatMul of the main graph, become part of its weights and its bias, where nothing else reads
/// the tensor between them, or the weights. A Conv or Gemm gets a bias where it needs one, a MatMul an Add after it.
/// The layer gives the tensor of the last scale, under its name. Returns how many nodes went.
std::size_t fold_scales(onnx::Model& model);

}  // namespace graft::quant

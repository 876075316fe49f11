// Empirical bias correction: what int8 adds to a channel on average is taken from its bias.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "onnx/model.hpp"
#include "quant/observe.hpp"
#include "runtime/engine.hpp"

namespace graft::quant {

/// A layer whose bias was changed.
struct CorrectedBias {
  std::string layer;     ///< As the node is described.
  std::string tensor;    ///< What the layer gives.
  double mean = 0;       ///< Of the absolute corrections of its channels.
  double largest = 0;    ///< The largest of them.
  double deviation = 0;  ///< Of the reference's tensor within its channels: what the corrections are to be seen by.
};

/// Nagel et al. 2019, Data-Free Quantization, section 4.2, with the means of data: for each Conv, ConvTranspose, Gemm
/// and MatMul of the main graph that reads int8 weights through DequantizeLinear, the mean of each channel of its
/// output is made that of the reference, where the tensor has the same name. Layers come one after the other, so that
/// each sees what the corrections before it give; those that do not depend on each other at once. (Many at once correct
/// again and again what they share, and end worse than nothing.) A layer without a bias gets one; inputs with a default
/// become constants. The int8 network is run once, from layer to layer, where what lies between two of them fits into
/// `memory` bytes for all samples (twice that is taken), and from an earlier layer where it does not. The options'
/// progress counts samples over all runs.
std::vector<CorrectedBias> correct_bias(const runtime::Engine& engine, onnx::Model& quantized,
                                        const onnx::Model& reference, const CalibrationData& data,
                                        const ObserveOptions& options = {}, std::size_t memory = std::size_t{1} << 30);

}  // namespace graft::quant

// Empirical bias correction: subtracts the mean error that int8 causes in a channel from the channel's bias.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "onnx/model.hpp"
#include "quant/calibrate/observe.hpp"
#include "runtime/engine.hpp"

namespace graft::quant {

/// The result of bias correction for one layer. All numbers have the unit of the layer's output.
struct CorrectedBias {
  std::string layer;   ///< The description of the node.
  std::string tensor;  ///< The name of the layer's output.
  double mean = 0;     ///< The mean of the absolute corrections of its channels.
  double largest = 0;  ///< The largest absolute correction.
  /// The standard deviation of the reference's tensor within its channels, in the unit of `mean` and `largest`. A
  /// correction far below it has little effect.
  double deviation = 0;
};

/// Implements bias correction (Nagel et al. 2019, Data-Free Quantization, section 4.2) with means measured on data, and
/// returns one result per changed layer. For each Conv, ConvTranspose, Gemm and MatMul of the main graph of `quantized`
/// that reads int8 weights through DequantizeLinear, shifts the mean of each output channel to the mean of the tensor
/// of the same name in `reference`. Layers are corrected in topological order, so that each correction includes the
/// effect of earlier ones; only independent layers are corrected together, because dependent layers would each correct
/// their common error. A layer without a bias gets one; inputs with a default become constants. The int8 network is run
/// once, layer by layer, if the tensors between two layers fit into `memory` bytes for all samples (twice as much is
/// used); otherwise parts are run again. The progress callback of `options` counts samples over all runs.
std::vector<CorrectedBias> correct_bias(const runtime::Engine& engine, onnx::Model& quantized,
                                        const onnx::Model& reference, const CalibrationData& data,
                                        const ObserveOptions& options = {}, std::size_t memory = std::size_t{1} << 30);

}  // namespace graft::quant

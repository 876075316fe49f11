// Empirical bias correction: the mean error that int8 causes in a channel is subtracted from its bias.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "onnx/model.hpp"
#include "quant/calibrate/observe.hpp"
#include "runtime/engine.hpp"

namespace graft::quant {

/// A layer whose bias was changed.
struct CorrectedBias {
  std::string layer;   ///< The description of the node.
  std::string tensor;  ///< The output of the layer.
  double mean = 0;     ///< The mean of the absolute corrections of its channels.
  double largest = 0;  ///< The largest absolute correction.
  /// The deviation of the reference's tensor within its channels, with which the corrections can be compared.
  double deviation = 0;
};

/// Implements Nagel et al. 2019, Data-Free Quantization, section 4.2, with the means of data: for each Conv,
/// ConvTranspose, Gemm and MatMul of the main graph that reads int8 weights through DequantizeLinear, the mean of each
/// channel of the output becomes that of the tensor of the same name in the reference. Layers are corrected one after
/// the other, so that each correction includes the effect of those before it; layers that do not depend on each other
/// are corrected at once. (If many are corrected at once, they correct again and again what they share, and end worse
/// than nothing.) A layer without a bias gets one; inputs with a default become constants. The int8 network is run
/// once, from layer to layer, if the tensors between two layers fit into `memory` bytes for all samples (twice as much
/// is used), and from an earlier layer if they do not. The progress of `options` counts samples over all runs.
std::vector<CorrectedBias> correct_bias(const runtime::Engine& engine, onnx::Model& quantized,
                                        const onnx::Model& reference, const CalibrationData& data,
                                        const ObserveOptions& options = {}, std::size_t memory = std::size_t{1} << 30);

}  // namespace graft::quant

// SmoothQuant: moves what is hard to quantize from the inputs of matrix products into their weights.
#pragma once

#include <string>
#include <vector>

#include "onnx/model.hpp"
#include "quant/calibrate/observe.hpp"
#include "runtime/engine.hpp"

namespace graft::quant {

struct SmoothOptions {
  /// The exponent alpha of equation 4: with 0 the weights lose all differences between channels, with 1 the inputs
  /// do.
  double alpha = 0.5;
  /// Whether Conv and ConvTranspose are smoothed too. With a scale for each channel of the weights that is worth more
  /// than equalize: 34.0 dB on the digits network, 32.2 equalized, 32.5 as it is; 28.5, 24.3 and 23.8 on a deep random
  /// one.
  bool convolutions = false;
  ObserveOptions observe = {};
};

/// A tensor and the layers that read it.
struct Smoothed {
  std::string tensor;
  std::vector<std::string> layers;  ///< The descriptions of the nodes.
  /// The smallest and the largest divisor of its channels.
  double smallest = 1;
  double largest = 1;
  std::string why_not;  ///< Why everything was left as it is; otherwise empty.
};

/// Implements Xiao et al. 2023, SmoothQuant, equation 4: channel j of the input of the MatMuls and Gemms of the main
/// graph that have constant f32 weights is divided by max|x_j|^alpha / max|w_j|^(1 - alpha), and their weights are
/// multiplied by it. The nodes that compute the input divide their constants: LayerNormalization, RMSNormalization,
/// BatchNormalization, Mul and Add with constants, another layer; also through Relu and similar nodes, Flatten, and one
/// side of a Mul. Layers that read the same tensor share the divisors. If other nodes read the tensor too, or no node
/// can divide its constants, the tensor is left as it is.
std::vector<Smoothed> smooth_quant(const runtime::Engine& engine, onnx::Model& model, const CalibrationData& data,
                                   const SmoothOptions& options = {});

}  // namespace graft::quant

// SmoothQuant: moves the outliers in the inputs of matrix products into their weights, which int8 represents better.
#pragma once

#include <string>
#include <vector>

#include "onnx/model.hpp"
#include "quant/calibrate/observe.hpp"
#include "runtime/engine.hpp"

namespace graft::quant {

struct SmoothOptions {
  /// The exponent alpha of equation 4. With 0 the ranges of the weights' channels become equal, with 1 those of the
  /// inputs' channels.
  double alpha = 0.5;
  /// Whether Conv and ConvTranspose are smoothed too. With a scale for each channel of the weights, smoothing them
  /// gains more than equalization: 34.0 dB on the digits network, against 32.2 dB with equalization and 32.5 dB with
  /// neither; on a deep random network 28.5, 24.3 and 23.8 dB.
  bool convolutions = false;
  ObserveOptions observe = {};
};

/// The result of SmoothQuant for a tensor and the layers that read it.
struct Smoothed {
  std::string tensor;
  std::vector<std::string> layers;  ///< The descriptions of the nodes.
  /// The smallest and the largest divisor of its channels.
  double smallest = 1;
  double largest = 1;
  std::string why_not;  ///< Why the tensor was not divided; empty if it was.
};

/// Implements Xiao et al. 2023, SmoothQuant, equation 4. For the MatMuls and Gemms of the main graph that have constant
/// f32 weights, channel j of the input is divided by max|x_j|^alpha / max|w_j|^(1 - alpha), and the weights are
/// multiplied by it. The division is applied to constants of the nodes that compute the input: LayerNormalization,
/// RMSNormalization, BatchNormalization, Mul and Add with constants, or another layer. It also passes through Relu and
/// similar nodes, Flatten, and one side of a Mul. Layers that read the same tensor share the divisors. If other nodes
/// read the tensor too, or no constants can be divided, the tensor is not changed.
std::vector<Smoothed> smooth_quant(const runtime::Engine& engine, onnx::Model& model, const CalibrationData& data,
                                   const SmoothOptions& options = {});

}  // namespace graft::quant

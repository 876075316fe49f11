// SmoothQuant: what is hard to quantize moves from the inputs of matrix products into their weights.
#pragma once

#include <string>
#include <vector>

#include "onnx/model.hpp"
#include "quant/observe.hpp"
#include "runtime/engine.hpp"

namespace graft::quant {

struct SmoothOptions {
  double alpha = 0.5;  ///< From 0, nothing moves from the input, to 1, everything does.
  /// The same for Conv and ConvTranspose. With a scale for each channel of the weights that is worth more than
  /// equalize: 34.0 dB on the digits network, 32.2 equalized, 32.5 as it is; 28.5, 24.3 and 23.8 on a deep random one.
  bool convolutions = false;
  ObserveOptions observe = {};
};

/// A tensor and the layers that read it.
struct Smoothed {
  std::string tensor;
  std::vector<std::string> layers;  ///< As the nodes are described.
  double smallest = 1;              ///< Of what its channels were divided by.
  double largest = 1;
  std::string why_not;  ///< Not empty where everything was left as it is.
};

/// Xiao et al. 2023, SmoothQuant, equation 4: channel j of the input of the MatMuls and Gemms of the main graph that
/// have constant weights of f32 is divided by max|x_j|^alpha / max|w_j|^(1 - alpha), and their weights multiplied. What
/// makes the input takes the division into its constants: LayerNormalization, RMSNormalization, BatchNormalization, Mul
/// and Add with constants, another layer; also through Relu and its like, Flatten, and one side of a Mul. Layers that
/// read the same tensor share the numbers; where others read it too, or nothing takes the division, it is left as it
/// is.
std::vector<Smoothed> smooth_quant(const runtime::Engine& engine, onnx::Model& model, const CalibrationData& data,
                                   const SmoothOptions& options = {});

}  // namespace graft::quant

// Cross-layer equalization: scales the channels between neighboring layers so that int8 can share the ranges of
// weights.
#pragma once

#include <string>
#include <vector>

#include "onnx/model.hpp"

namespace graft::quant {

/// Two layers, and the factors of the channels between them.
struct Equalized {
  /// Descriptions of the two nodes.
  std::string first;
  std::string second;
  double smallest = 1;
  double largest = 1;
};

/// Implements Nagel et al. 2019, Data-Free Quantization, section 4.1. Between each two layers of the main graph with
/// only operators between them through which a positive factor passes (Relu, LeakyRelu, pools, Pad with zeros, Flatten
/// ...), and no other reader on the way, each channel is scaled until the largest weight that computes it is as large
/// as the largest that reads it. The factors are not rounded to powers of two: that costs 2.5 dB in int8 on the digits
/// network, and the weights are rounded anyhow. Layers whose weights are shared, or are not f32 constants, stay as they
/// are. Equalization pays if ranges are uneven; if they are not, weights with a scale for each channel lose a little.
std::vector<Equalized> equalize_across_layers(onnx::Model& model);

}  // namespace graft::quant

// Cross-layer equalization: scales the channels between neighboring layers so that their weights use the int8 range
// evenly.
#pragma once

#include <string>
#include <vector>

#include "onnx/model.hpp"

namespace graft::quant {

/// Two layers whose common channels were scaled, and the factors.
struct Equalized {
  /// The descriptions of the two nodes.
  std::string first;
  std::string second;
  double smallest = 1;
  double largest = 1;
};

/// Implements Nagel et al. 2019, Data-Free Quantization, section 4.1, for pairs of layers of the main graph between
/// which only operators lie that a positive factor passes through (Relu, LeakyRelu, pools, Pad with zeros, Flatten
/// ...), without other readers. Each channel is scaled until the largest weight that computes it is as large as the
/// largest weight that reads it. The factors are not rounded to powers of two: that would cost 2.5 dB in int8 on the
/// digits network, and the weights are rounded in any case. Layers whose weights are shared, or are not f32 constants,
/// are not changed. Equalization helps if ranges are uneven; otherwise, weights with a scale for each channel lose a
/// little.
std::vector<Equalized> equalize_across_layers(onnx::Model& model);

}  // namespace graft::quant

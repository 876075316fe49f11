// Cross-layer equalization: channels of neighboring layers get ranges of weights that int8 can share.
#pragma once

#include <string>
#include <vector>

#include "onnx/model.hpp"

namespace graft::quant {

/// Two layers, and what the channels between them were multiplied by.
struct Equalized {
  std::string first;  ///< As the nodes are described.
  std::string second;
  double smallest = 1;
  double largest = 1;
};

/// Nagel et al. 2019, Data-Free Quantization, section 4.1. For each two layers of the main graph with only operators
/// between them that a positive factor passes through (Relu, LeakyRelu, pools, Pad with zeros, Flatten ...), and
/// nothing else who reads on the way, each channel between them is scaled until the largest weight that makes it is as
/// large as the largest that reads it. The factors are not rounded to powers of two: that costs 2.5 dB in int8 on the
/// digits network, and the weights are rounded anyhow. Layers whose weights are shared, or no f32 constants, stay as
/// they are. It pays where ranges are uneven; where they are not, weights with a scale for each channel lose a little.
std::vector<Equalized> equalize_across_layers(onnx::Model& model);

}  // namespace graft::quant

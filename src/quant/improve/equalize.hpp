// Cross-layer equalization: scales the channels between neighboring layers so that their weights use the int8 range
// evenly.
#pragma once

#include <string>
#include <vector>

#include "onnx/model.hpp"

namespace graft::quant {

/// The result for a pair of consecutive layers whose common channels were scaled.
struct Equalized {
  /// The descriptions of the two layers' nodes, in topological order.
  std::string first;
  std::string second;
  double smallest = 1;
  double largest = 1;
};

/// Implements cross-layer equalization (Nagel et al. 2019, Data-Free Quantization, section 4.1), and returns one result
/// per changed pair of layers of the main graph. A pair is connected only by operators that commute with a positive
/// factor per channel (Relu, LeakyRelu, pools, Pad with zeros, Flatten ...), and no other node reads the tensors
/// between them. Each channel is scaled until the largest weight that computes it equals the largest weight that reads
/// it. The factors are not rounded to powers of two: that would cost 2.5 dB in int8 on the digits network, and the
/// weights are rounded in any case. Layers whose weights are shared, or are not f32 constants, are not changed.
/// Equalization helps if the ranges of channels differ a lot; otherwise, weights with a scale for each channel lose a
/// little accuracy.
std::vector<Equalized> equalize_across_layers(onnx::Model& model);

}  // namespace graft::quant

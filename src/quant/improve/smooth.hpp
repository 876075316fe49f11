// SmoothQuant: moves the outliers in the inputs of matrix products into their weights, which int8 represents better.
#pragma once

#include <string>
#include <vector>

#include "onnx/model.hpp"
#include "quant/calibrate/observe.hpp"
#include "runtime/engine.hpp"

namespace graft::quant {

struct SmoothOptions {
  /// The exponent alpha of equation 4, from 0 to 1: at 0 all channels of the weights get the same range, at 1 all
  /// channels of the inputs.
  double alpha = 0.5;
  /// Whether Conv and ConvTranspose are smoothed too. If weights have a scale for each channel, this gains more than
  /// equalization: 34.0 dB on the digits network, against 32.2 dB with equalization and 32.5 dB with neither; on a deep
  /// random network 28.5, 24.3 and 23.8 dB.
  bool convolutions = false;
  ObserveOptions observe = {};
};

/// The result of SmoothQuant for one tensor and the layers that read it.
struct Smoothed {
  std::string tensor;
  std::vector<std::string> layers;  ///< The descriptions of the nodes.
  /// The smallest and the largest divisor of the tensor's channels; both are 1 if it was not changed.
  double smallest = 1;
  double largest = 1;
  std::string why_not;  ///< Why the tensor was not divided; empty if it was.
};

/// Implements SmoothQuant (Xiao et al. 2023, equation 4), and returns one result per tensor. For each MatMul and Gemm
/// of the main graph with constant f32 weights w and input x, divides channel j of x by max|x_j|^alpha / max|w_j|^(1 -
/// alpha) and multiplies the weights by it; the ranges of x are measured on `data`. The division changes constants of
/// the nodes that compute x: LayerNormalization, RMSNormalization, BatchNormalization, Mul and Add with constants, or
/// another layer. Relu and similar nodes, Flatten, and one factor of a Mul may lie between these nodes and x. Layers
/// that read the same tensor share the divisors. If other nodes read the tensor too, or no such constants are found,
/// the tensor is not changed, and its result has the reason.
std::vector<Smoothed> smooth_quant(const runtime::Engine& engine, onnx::Model& model, const CalibrationData& data,
                                   const SmoothOptions& options = {});

}  // namespace graft::quant

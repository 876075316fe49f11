// AdaRound: rounds each weight up or down, whichever brings the layer's output closer to the original.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "onnx/model.hpp"
#include "quant/calibrate/observe.hpp"
#include "runtime/engine.hpp"

namespace graft::quant {

struct RoundOptions {
  ObserveOptions observe = {};
  /// The total number of input vectors of a layer that are sampled from all samples together.
  std::int64_t rows = 8192;
  std::int64_t memory = std::int64_t{1} << 29;  ///< The maximum memory in bytes for the statistics of inputs at a time.
};

/// The result of AdaRound for one layer with int8 weights: the number of its weights, how many were rounded
/// differently, and the error before and after.
struct Rounded {
  std::string layer;  ///< The description of the node.
  std::size_t weights = 0;
  std::size_t changed = 0;
  /// The root mean square error of the layer's output before AdaRound, relative to the standard deviation of the
  /// output.
  double before = 0;
  double after = 0;     ///< The relative error after AdaRound, on the same data.
  std::string why_not;  ///< Why AdaRound did not apply to the layer; otherwise empty.
};

/// Implements AdaRound (Nagel et al. 2020, Up or Down? Adaptive Rounding for Post-Training Quantization) and returns
/// one result per layer. For each Conv, Gemm and MatMul of the main graph of `quantized` that reads int8 weights
/// through DequantizeLinear, minimizes || (W - W') x ||^2 over the layer's inputs x in the quantized network; W are the
/// weights of the layer of `reference` that computes the tensor of the same name. Instead of the paper's relaxation,
/// repeatedly flips the rounding direction of the weight that reduces the error most, computed from the covariance of
/// the inputs: on the digits network and deep random ones the final error was as low as with the relaxation or lower,
/// in a twentieth of the time. Does not correct the mean of the error; call correct_bias afterwards. All weights stay
/// within one step of their unrounded values, and within +-127.
std::vector<Rounded> adaround(const runtime::Engine& engine, onnx::Model& quantized, const onnx::Model& reference,
                              const CalibrationData& data, const RoundOptions& options = {});

}  // namespace graft::quant

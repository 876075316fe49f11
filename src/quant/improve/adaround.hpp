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
  /// The number of input vectors of a layer that are sampled, over all samples.
  std::int64_t rows = 8192;
  std::int64_t memory = std::int64_t{1} << 29;  ///< The maximum memory in bytes for the statistics of inputs at a time.
};

/// The result of AdaRound for a layer with int8 weights.
struct Rounded {
  std::string layer;  ///< The description of the node.
  std::size_t weights = 0;
  std::size_t changed = 0;
  /// The error of the output before AdaRound (root mean square), relative to the output without its mean.
  double before = 0;
  double after = 0;     ///< The relative error after AdaRound, on the same data.
  std::string why_not;  ///< Why AdaRound did not apply to the layer; otherwise empty.
};

/// Implements Nagel et al. 2020, Up or Down? Adaptive Rounding for Post-Training Quantization: for each Conv, Gemm and
/// MatMul of the main graph that reads int8 weights through DequantizeLinear, minimizes || (W - W') x ||^2 over the
/// layer's inputs x in the quantized network. W are the weights of the layer of the reference that computes the tensor
/// of the same name. Instead of the paper's relaxation, the weight that gains most is rounded to its other side, as
/// long as one gains, judged by the covariance of the inputs: on the digits network and deep random ones that ended as
/// low as the relaxation or lower, in a twentieth of the time. The mean of the error is left to correct_bias, which
/// must run afterwards. All weights stay within one step of their unrounded values, and within +-127.
std::vector<Rounded> adaround(const runtime::Engine& engine, onnx::Model& quantized, const onnx::Model& reference,
                              const CalibrationData& data, const RoundOptions& options = {});

}  // namespace graft::quant

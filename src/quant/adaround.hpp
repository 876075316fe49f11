// Adaptive rounding: each weight goes up or down, whichever makes the layer's output better, not to what is nearest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "onnx/model.hpp"
#include "quant/observe.hpp"
#include "runtime/engine.hpp"

namespace graft::quant {

struct RoundOptions {
  ObserveOptions observe = {};
  std::int64_t rows = 8192;                     ///< Inputs of a layer that are looked at, over all samples.
  std::int64_t memory = std::int64_t{1} << 29;  ///< Bytes for what is known of inputs at a time.
};

/// A layer with int8 weights.
struct Rounded {
  std::string layer;  ///< As the node is described.
  std::size_t weights = 0;
  std::size_t changed = 0;
  double before = 0;    ///< What rounding does to the output, on average, by the size of the output without its mean.
  double after = 0;     ///< On the same data.
  std::string why_not;  ///< Not empty where the layer was left as it is.
};

/// Nagel et al. 2020, Up or Down? Adaptive Rounding for Post-Training Quantization: for each Conv, Gemm and MatMul of
/// the main graph that reads int8 weights through DequantizeLinear, || (W - W') x ||^2 over the layer's inputs x in the
/// quantized network is made small, W being the weights of the layer of the reference that gives the tensor of the same
/// name. Instead of the paper's relaxation, the weight that gains most is rounded to its other side, as long as one
/// gains, judged by the covariance of the inputs: on the digits network and deep random ones that ended as low as the
/// relaxation or lower, in a twentieth of the time. The mean of the error is left to correct_bias, which is to follow.
/// All weights stay within one step of what they were before they were rounded, and within +-127.
std::vector<Rounded> adaround(const runtime::Engine& engine, onnx::Model& quantized, const onnx::Model& reference,
                              const CalibrationData& data, const RoundOptions& options = {});

}  // namespace graft::quant

// Measures the tensors of a network in f32, and decides by their elements which nodes must stay in f32: those that
// overflow in the narrow type, count in integers that it rounds, or sum beyond its range.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "quant/search/type_trials.hpp"
#include "verify/localize/emulate.hpp"

namespace graft::quant {

struct MeasuredTensors {
  std::map<std::string, verify::TypeEffect, std::less<>> effects;       ///< The effect of the type on each tensor.
  std::vector<std::pair<const onnx::Node*, verify::TensorRange>> sums;  ///< The ranges of sums inside nodes.

  /// Returns the measured range and rounding error of a tensor, or null for a tensor that is not f32.
  [[nodiscard]] const verify::TypeEffect* effect(const std::string& tensor) const {
    const auto found = effects.find(tensor);
    return found == effects.end() ? nullptr : &found->second;
  }
};

/// Runs the f32 network with all inputs, and returns the range and rounding error of each tensor. For f16, the internal
/// sums of nodes that are not in `kept` are measured too.
[[nodiscard]] MeasuredTensors measure_tensors(TypeTrials& trials, const KeptNodes& kept);

/// A tensor with large negative numbers (a mask) that become minus infinity in the narrow type (f16 or bf16).
struct MaskTensor {
  const onnx::Value* value;
  std::string what;  ///< A description of the range: "reaches -1e9, and the largest value of f16 is 65504".
};

/// Adds to `kept` the nodes that compute or read a tensor with values beyond the range of the type, or with integers
/// that the type cannot represent exactly. Tensors beyond the range whose readers compute the same result from minus
/// infinity (masks) are returned instead, and their nodes are not added.
[[nodiscard]] std::vector<MaskTensor> keep_overflowing(KeptNodes& kept, const MeasuredTensors& measured,
                                                       const onnx::Graph& graph, report::Precision precision);
/// Adds to `kept` the nodes whose internal sums are beyond the range of the type.
void keep_sums(KeptNodes& kept, const MeasuredTensors& measured, report::Precision precision);
/// Adds to `kept` the node that computes a tensor and the nodes that read it. `why` is stored as KeptNode::why, and
/// `what` describes the tensor in KeptNode::reason.
void keep_makers_and_readers(KeptNodes& kept, const onnx::Value& value, WhyKept why, const std::string& what);

/// Returns whether a node computes a tensor of f32.
[[nodiscard]] bool has_f32_output(const onnx::Node& node);

}  // namespace graft::quant

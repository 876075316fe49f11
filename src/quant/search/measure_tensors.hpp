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

  /// Returns null for a tensor that is not of f32.
  [[nodiscard]] const verify::TypeEffect* effect(const std::string& tensor) const {
    const auto found = effects.find(tensor);
    return found == effects.end() ? nullptr : &found->second;
  }
};

/// Runs the network in f32 with all inputs. The sums inside nodes that are not kept are measured for f16.
[[nodiscard]] MeasuredTensors measure_tensors(TypeTrials& trials, const KeptNodes& kept);

/// A tensor whose large negative numbers become minus infinity in the narrow type.
struct MaskTensor {
  const onnx::Value* value;
  std::string what;  ///< A description of the range: "reaches -1e9, and the largest value of f16 is 65504".
};

/// Keeps the nodes that compute or read a tensor beyond the range of the type, or that counts further than it does.
/// Returns the tensors beyond the range whose readers compute the same from minus infinity; their nodes are not kept.
[[nodiscard]] std::vector<MaskTensor> keep_overflowing(KeptNodes& kept, const MeasuredTensors& measured,
                                                       const onnx::Graph& graph, report::Precision precision);
/// Keeps the nodes whose internal sums are beyond the range of the type.
void keep_sums(KeptNodes& kept, const MeasuredTensors& measured, report::Precision precision);
/// Keeps the nodes that compute or read a tensor.
void keep_makers_and_readers(KeptNodes& kept, const onnx::Value& value, WhyKept why, const std::string& what);

/// Returns whether a node computes a tensor of f32.
[[nodiscard]] bool has_f32_output(const onnx::Node& node);

}  // namespace graft::quant

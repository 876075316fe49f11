// Rewrites LSTM, GRU and RNN with layout = 1, which ONNX Runtime 1.31 refuses.
#pragma once

#include <cstddef>

#include "onnx/model.hpp"

namespace graft::runtime {

/// Replaces each LSTM, GRU and RNN that has the batch as first axis (layout = 1) with the same node with layout = 0
/// between Transposes, in all graphs of the model. Outputs keep their names. The permutations follow from the shapes in
/// ONNX's documentation of the operators, and share nothing with the pass that rewrites these nodes for TensorRT: ONNX
/// Runtime is the reference for the values of the pass. Returns the number of replaced nodes.
std::size_t put_time_first(onnx::Model& model);

/// Returns whether a recurrent layer in a function has a `layout` that the call of the function determines.
/// put_time_first() moves the axes of such a layer only after the function was inlined.
[[nodiscard]] bool has_layout_of_call(const onnx::Model& model);

}  // namespace graft::runtime

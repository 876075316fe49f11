// Rewrites LSTM, GRU and RNN with layout = 1, which ONNX Runtime 1.31 refuses.
#pragma once

#include <cstddef>

#include "onnx/model.hpp"

namespace graft::runtime {

/// Replaces each LSTM, GRU and RNN whose first axis is the batch (layout = 1) with the same node with layout = 0
/// between Transposes, in all graphs of the model. Outputs keep their names. The permutations are derived from the
/// shapes in ONNX's documentation of the operators, independently of the pass that rewrites these nodes for TensorRT,
/// because ONNX Runtime is the reference for the values of that pass. Returns the number of replaced nodes.
std::size_t put_time_first(onnx::Model& model);

/// Returns whether a recurrent layer in a function has a `layout` that the call of the function determines.
/// put_time_first() permutes the axes of such a layer only after the function was inlined.
[[nodiscard]] bool has_layout_of_call(const onnx::Model& model);

}  // namespace graft::runtime

// OpenVINO nodes for the operators of integer_arithmetic.hpp.
#pragma once

#include <openvino/core/model.hpp>
#include <openvino/frontend/onnx/extension/conversion.hpp>

namespace graft::runtime {

/// Converts engine_quantize and engine_fixed to OpenVINO nodes; called by the ONNX reader.
[[nodiscard]] ov::OutputVector make_quantize(const ov::frontend::NodeContext& node);
[[nodiscard]] ov::OutputVector make_fixed(const ov::frontend::NodeContext& node);

/// Removes the nodes of engine_fixed, so that constant folding reaches the values after them. Meant for a model that is
/// folded and not compiled.
void release_fixed(ov::Model& model);

}  // namespace graft::runtime

// The engine's own nodes for quantized models.
#pragma once

#include <openvino/core/model.hpp>
#include <openvino/frontend/onnx/extension/conversion.hpp>

namespace graft::runtime {

/// What the ONNX reader makes of engine_quantize and engine_fixed.
[[nodiscard]] ov::OutputVector make_quantize(const ov::frontend::NodeContext& node);
[[nodiscard]] ov::OutputVector make_fixed(const ov::frontend::NodeContext& node);

/// Lets constant folding through what engine_fixed holds. For a model that is folded and not compiled.
void release_fixed(ov::Model& model);

}  // namespace graft::runtime

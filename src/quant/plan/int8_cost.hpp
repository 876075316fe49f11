// The cost of a plan on a device, estimated where no device can measure its speed.
#pragma once

#include "graft/report/quantize.hpp"
#include "onnx/model.hpp"
#include "quant/plan/int8_plan.hpp"

namespace graft::quant {

using report::Int8Cost;

/// Returns the cost of a plan. Nodes that TensorRT fuses into int8 kernels, and nodes that only move int8, do not
/// count.
[[nodiscard]] Int8Cost cost_of(const onnx::Model& prepared, const Int8Plan& plan);

}  // namespace graft::quant

// The estimated cost of a plan on a device, for machines without one.
#pragma once

#include "graft/report/quantize.hpp"
#include "onnx/model.hpp"
#include "quant/plan/int8_plan.hpp"

namespace graft::quant {

using report::Int8Cost;

/// Returns the estimated cost of a plan. Nodes that TensorRT fuses into int8 kernels, and nodes that only move int8
/// elements, count as free.
[[nodiscard]] Int8Cost cost_of(const onnx::Model& prepared, const Int8Plan& plan);

}  // namespace graft::quant

// Reads the kernels of a built engine, and finds the nodes of the model that each kernel computes.
#pragma once

#include <nlohmann/json.hpp>

#include "graft/report/build.hpp"
#include "onnx/model.hpp"

namespace graft::engine {

/// Returns the kernels of an engine with the nodes of `model` that they compute. `told` is the field `engine_layers` of
/// the engine driver's result.
[[nodiscard]] report::EngineLayers read_engine_layers(const onnx::Model& model, const nlohmann::json& told);

}  // namespace graft::engine

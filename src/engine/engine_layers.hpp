// Reads the kernels of a built engine, and finds the nodes of the model that each kernel computes.
#pragma once

#include <nlohmann/json.hpp>

#include "graft/report/build.hpp"
#include "onnx/model.hpp"

namespace graft::engine {

/// Returns the kernels of an engine. `told` is the field `engine_layers` in the engine driver's result.
[[nodiscard]] report::EngineLayers read_engine_layers(const onnx::Model& model, const nlohmann::json& told);

}  // namespace graft::engine

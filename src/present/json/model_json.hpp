// A model's inputs and outputs, and the format that it was read from, as JSON.
#pragma once

#include "import/origin.hpp"
#include "onnx/model.hpp"
#include "present/json/values.hpp"

namespace graft::present {

/// Returns {"inputs": [{"name", "type", "shape"}], "outputs": ...}. A shape is null if its rank is unknown.
[[nodiscard]] Json json_of_io(const onnx::Model& model);

/// Returns {"origin": ..., "notes": ...}. The origin of an ONNX model is null.
[[nodiscard]] Json to_json(const Origin& origin);

}  // namespace graft::present

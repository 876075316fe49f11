// A model's inputs and outputs, and the format that it was read from, as JSON.
#pragma once

#include "import/origin.hpp"
#include "onnx/model.hpp"
#include "present/json/values.hpp"

namespace graft::present {

/// {"inputs": [{"name", "type", "shape"}], "outputs": ...}; a shape is null where not even the rank is known.
[[nodiscard]] Json json_of_io(const onnx::Model& model);

/// {"origin": ..., "notes": ...}; the origin of ONNX is null.
[[nodiscard]] Json to_json(const Origin& origin);

}  // namespace graft::present

// Joins two models, of which the second continues with what the first computes.
#pragma once

#include <string>
#include <vector>

#include "onnx/model.hpp"

namespace graft::onnx {

/// Returns one model of both. An input of the second model is connected to the value, or to the input, of that name in
/// the first; other inputs stay inputs. `outputs` names the outputs of the result, from either model, in this order.
/// Both models must import the same opsets. Throws Error for an output that neither model has.
[[nodiscard]] Model join(const Model& first, const Model& second, const std::vector<std::string>& outputs);

}  // namespace graft::onnx

// Joins two models, of which the second one processes outputs of the first.
#pragma once

#include <string>
#include <vector>

#include "onnx/model.hpp"

namespace graft::onnx {

/// Returns a model that contains the nodes of both models. An input of the second model is connected to the value or
/// input of the same name in the first; inputs without such a counterpart stay inputs. `outputs` names the outputs of
/// the result, from either model, in this order. Both models must import the same opsets. Throws Error for an output
/// that neither model has.
[[nodiscard]] Model join(const Model& first, const Model& second, const std::vector<std::string>& outputs);

}  // namespace graft::onnx

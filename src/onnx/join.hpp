// One model of two, of which the second goes on with what the first gives.
#pragma once

#include <string>
#include <vector>

#include "onnx/model.hpp"

namespace graft::onnx {

/// What the second model has as an input, the first makes, or has as an input, under that name; the rest stays an
/// input. `outputs` are those of the whole, of either model, in this order. Both import the same operator sets. Throws
/// Error for an output that neither has.
[[nodiscard]] Model join(const Model& first, const Model& second, const std::vector<std::string>& outputs);

}  // namespace graft::onnx

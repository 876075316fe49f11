// Suggests ranges for inputs whose sizes or values TensorRT requires, where the user gave none.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "inspect/trials.hpp"
#include "onnx/model.hpp"

namespace graft::inspect {

/// A set of suggested ranges, by the name of the input.
using SuggestedRanges = std::map<std::string, SuggestedRange>;

/// Returns at least one set of ranges for the inputs of a model to try in builds, the most likely first. A symbol that
/// several inputs share has one size. For an input from whose elements sizes are computed, the elements are derived
/// from the node that reads it (Reshape, Split, Expand, Slice ...).
[[nodiscard]] std::vector<SuggestedRanges> ranges_worth_a_build(const onnx::Model& model);

}  // namespace graft::inspect

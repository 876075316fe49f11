// Suggests ranges for inputs whose sizes or values TensorRT requires, where the user gave none.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "inspect/trials.hpp"
#include "onnx/model.hpp"

namespace graft::inspect {

/// A set of ranges, by input.
using SuggestedRanges = std::map<std::string, SuggestedRange>;

/// Returns the sets of ranges that are worth a build, the most useful first; at least one. A dimension that several
/// inputs share by name has one size. The values of an input from which sizes are computed follow from the node that
/// reads it: Reshape, Split, Expand, Slice ...
[[nodiscard]] std::vector<SuggestedRanges> ranges_worth_a_build(const onnx::Model& model);

}  // namespace graft::inspect

// Writes regions of a model as strings, by which the rewriter recognizes regions that compute the same, and rewrites
// that are alike.
#pragma once

#include <string>

#include "onnx/model.hpp"

namespace graft::passes {

/// Returns a string that is equal for two regions if they are equal except for the names of values and nodes: same
/// operators, attributes, types, shapes and constants.
[[nodiscard]] std::string region_text(const onnx::Model& region);

/// Returns a string that is equal for two rewrites (`before` to `after`) that differ only in names, in the values of
/// weights, and in sizes that do not occur as integers in either region. One proof then serves for both.
[[nodiscard]] std::string kind_text(const onnx::Model& before, const onnx::Model& after);

}  // namespace graft::passes

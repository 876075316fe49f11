// Writes regions of a model as strings, by which the rewriter recognizes regions that compute the same, and rewrites
// that are alike.
#pragma once

#include <string>

#include "onnx/model.hpp"

namespace graft::passes {

/// Returns a region as a string that does not depend on names: it is the same for two regions that compute the same on
/// the same shapes.
[[nodiscard]] std::string region_text(const onnx::Model& region);

/// Returns a string that is the same for rewrites that are alike: they differ only in names, in the values of weights,
/// and in sizes that neither region names.
[[nodiscard]] std::string kind_text(const onnx::Model& before, const onnx::Model& after);

}  // namespace graft::passes

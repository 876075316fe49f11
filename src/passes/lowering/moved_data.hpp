// Nodes that only move or select elements.
#pragma once

#include <cstddef>
#include <vector>

#include "onnx/model.hpp"

namespace graft::passes {

/// Returns the inputs whose elements a node moves or selects, so that a function of single elements, which increases
/// where the node takes maxima, may be computed before the node. Returns an empty list for any other node. The value of
/// a Pad that is constant, its input 2, is not among them.
[[nodiscard]] std::vector<std::size_t> moved_inputs(const onnx::Node& node);

}  // namespace graft::passes

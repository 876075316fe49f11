// Nodes that only move or select elements.
#pragma once

#include <cstddef>
#include <vector>

#include "onnx/model.hpp"

namespace graft::passes {

/// Returns the indices of the inputs whose elements a node copies, reorders or selects (as Transpose or MaxPool does),
/// or an empty list for any other node. A monotonically increasing function of single elements, such as dequantization,
/// gives the same result before and after such a node. The fill value of a Pad (input 2) is not listed.
[[nodiscard]] std::vector<std::size_t> moved_inputs(const onnx::Node& node);

}  // namespace graft::passes

// Finds the sub-graphs of If and Loop by their attributes, and the branch that a condition selects.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "onnx/model.hpp"

namespace graft::onnx {

/// Returns the graph in an attribute, or null.
[[nodiscard]] Graph* subgraph(const Node& node, std::string_view attribute_name);

/// Returns the name of If's attribute that contains the branch for this condition; empty if the condition is unknown or
/// is not a single number.
[[nodiscard]] std::string_view taken_branch(const std::optional<std::vector<double>>& condition);

}  // namespace graft::onnx

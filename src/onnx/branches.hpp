// The sub-graphs of If and Loop by their attributes, and the branch that is taken.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "onnx/model.hpp"

namespace graft::onnx {

/// The graph in an attribute; null where there is none.
[[nodiscard]] Graph* subgraph(const Node& node, std::string_view attribute_name);

/// The attribute of If with the branch that it takes on this condition; empty where that is unknown, or not one number.
[[nodiscard]] std::string_view taken_branch(const std::optional<std::vector<double>>& condition);

}  // namespace graft::onnx

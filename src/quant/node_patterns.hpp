// How users name nodes: by the node, a tensor that it gives, or its operator, with * and ?.
#pragma once

#include <string>
#include <vector>

#include "graph/model.hpp"

namespace graft {

[[nodiscard]] bool matches_pattern(const std::string& pattern, const Node& node);

/// Throws Error naming the option and the nearest name where a pattern matches no node of the main graph.
void check_patterns(const char* option, const std::vector<std::string>& patterns, const Model& model);

}  // namespace graft

// Between nodes, what reports hold of them, and words.
#pragma once

#include <string>

#include "graft/node_ref.hpp"
#include "graph/model.hpp"

namespace graft {

[[nodiscard]] NodeRef ref_of(const Node& node);

/// "node 'conv1' (Conv)", as describe(const Node&) says it.
[[nodiscard]] std::string describe(const NodeRef& node);

}  // namespace graft

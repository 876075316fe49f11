// Between nodes, what reports hold of them, and words.
#pragma once

#include <string>

#include "graft/node_ref.hpp"
#include "onnx/model.hpp"

namespace graft::onnx {

[[nodiscard]] NodeRef ref_of(const Node& node);

/// "node 'conv1' (Conv)", as describe(const Node&) says it.
[[nodiscard]] std::string describe(const NodeRef& node);

/// Orders nodes by all but their ids: rewrites give other names to the outputs of a node that stays, so that its id in
/// the model before is not always that in the model after.
struct ByName {
  [[nodiscard]] bool operator()(const NodeRef& a, const NodeRef& b) const;
};

}  // namespace graft::onnx

// Converts nodes to the references that reports contain, and to text.
#pragma once

#include "graft/node_ref.hpp"
#include "onnx/model.hpp"

namespace graft::onnx {

[[nodiscard]] NodeRef ref_of(const Node& node);

/// Returns a description of a NodeRef in the format of describe(const Node&).
using graft::describe;

/// Orders nodes by name, operator and domain, but not by id. The id is the name of the node's first output, which may
/// change when a rewrite keeps the node.
struct ByName {
  [[nodiscard]] bool operator()(const NodeRef& a, const NodeRef& b) const;
};

}  // namespace graft::onnx

// Converts nodes to the references that reports hold, and to text.
#pragma once

#include "graft/node_ref.hpp"
#include "onnx/model.hpp"

namespace graft::onnx {

[[nodiscard]] NodeRef ref_of(const Node& node);

/// The description of a NodeRef reads like describe(const Node&).
using graft::describe;

/// Orders nodes by name, operator and domain, but not by id: rewrites rename the outputs of a node that stays, so that
/// its id before differs from the id after.
struct ByName {
  [[nodiscard]] bool operator()(const NodeRef& a, const NodeRef& b) const;
};

}  // namespace graft::onnx

// The comparisons of ONNX, computed for values that are known before the network runs.
#pragma once

#include <optional>

#include "onnx/model.hpp"

namespace graft::passes {

/// Returns the result of `left` op `right` for a comparison node (Equal, Greater, GreaterOrEqual, Less, LessOrEqual),
/// or nothing if the node is another operator.
template <class Number>
[[nodiscard]] std::optional<bool> compare(const onnx::Node& node, Number left, Number right) {
  if (node.is("Equal")) return left == right;
  if (node.is("Greater")) return left > right;
  if (node.is("GreaterOrEqual")) return left >= right;
  if (node.is("Less")) return left < right;
  if (node.is("LessOrEqual")) return left <= right;
  return std::nullopt;
}

}  // namespace graft::passes

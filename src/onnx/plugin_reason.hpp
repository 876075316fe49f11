// Explains why TensorRT runs a Graft node as a plugin or cannot run it, in the same words for convert, inspect and
// build.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "onnx/model.hpp"
#include "onnx/operator_node.hpp"

namespace graft::onnx {

/// The metadata key for the reason why `convert` left a node to a plugin.
inline constexpr std::string_view reason_note = "graft.reason";

/// Returns the reason that `convert` wrote on the node; otherwise the reason of a user's rule; otherwise the reason in
/// the operator's definition for the type in which the node computes. The node must have an operator
/// (find_operator_for).
[[nodiscard]] std::string reason_for_plugin(const Node& node);

/// Returns the first input of a Graft node whose type no plugin of its operator accepts, or nothing. f64 counts as f32,
/// in which TensorRT computes it.
[[nodiscard]] std::optional<RefusedType> type_refused_by_plugin(const OperatorType& type, const Node& node);

}  // namespace graft::onnx

// Why TensorRT runs a node of Graft as a plugin, or cannot: said alike by convert, inspect and build.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "onnx/model.hpp"
#include "onnx/operator_node.hpp"

namespace graft::onnx {

/// Metadata of a node that `convert` left to a plugin: the reason.
inline constexpr std::string_view reason_note = "graft.reason";

/// What `convert` wrote on the node; else what a rule of the user says; else the operator's own reason, for the type
/// that the node computes in. For a node that find_operator_for finds an operator for.
[[nodiscard]] std::string reason_for_plugin(const Node& node);

/// The first input of such a node whose type no plugin of its operator takes. TensorRT computes in f32 what a file has
/// in f64.
[[nodiscard]] std::optional<RefusedType> type_refused_by_plugin(const OperatorType& type, const Node& node);

}  // namespace graft::onnx

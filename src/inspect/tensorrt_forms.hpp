// Special forms of operators, for each of which tensorrt_facts.json lists the releases that support it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "onnx/model.hpp"

namespace graft::inspect {

struct Form {
  std::string_view name;  ///< The name of the form in tensorrt_facts.json.
  std::string what;       ///< Describes the form, as a reason to refuse the node.
  /// The advice for a node with this special form, a format string in which {} is replaced by the name of Setting::cut.
  /// If empty, the advice on the operator is used.
  std::string_view advice = {};
  bool builds_at_fixed_sizes = false;  ///< Whether TensorRT builds the form if all dimensions are fixed.
  bool is_computed_wrongly = false;    ///< Whether TensorRT builds the form and computes it wrongly without a message.
};
using Forms = std::vector<Form>;

/// Returns the special forms that a node has: attribute values, types, shapes and surroundings for which TensorRT may
/// behave differently than for the operator in general. Empty for most nodes.
[[nodiscard]] Forms forms_of(const onnx::Node& node);

/// Adds to `forms` the special forms that depend on other nodes: on the nodes that compute the inputs, on the node's
/// body, or on the body that contains the node.
void add_surroundings(const onnx::Node& node, Forms& forms);

/// Returns the first input or output of a node with more dimensions than TensorRT tensors can have, or null. Plugins
/// have the same limit.
[[nodiscard]] const onnx::Value* find_rank_above_limit(const onnx::Node& node);

/// Returns whether a type has fewer than 8 bits per element, or is an 8-bit floating-point type. The tables of
/// TensorRT's supported types do not cover these types.
[[nodiscard]] bool is_narrow(onnx::ElementType type);
/// Returns the first input or output of a node for whose type is_narrow() is true, or null.
[[nodiscard]] const onnx::Value* find_narrow(const onnx::Node& node);

}  // namespace graft::inspect

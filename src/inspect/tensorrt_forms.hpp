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
  /// The action for such a node, a format string in which {} is the name of Setting::cut; empty: the advice on the
  /// operator.
  std::string_view advice = {};
  bool builds_at_fixed_sizes = false;  ///< Whether TensorRT builds the form where each dimension has one size.
  bool is_computed_wrongly = false;    ///< Whether TensorRT builds the form and computes it wrongly without a message.
};
using Forms = std::vector<Form>;

/// Returns the special forms that a node has.
[[nodiscard]] Forms forms_of(const onnx::Node& node);

/// Adds the forms that depend on more than the node: on what computes its inputs, on its body, or on the body that it
/// is in.
void add_surroundings(const onnx::Node& node, Forms& forms);

/// Returns an input or output of a node that has more dimensions than a tensor of TensorRT, or null. Plugins have the
/// same limit.
[[nodiscard]] const onnx::Value* find_rank_above_limit(const onnx::Node& node);

/// Returns whether a type has fewer than 8 bits per element, or is a floating-point type of 8 bits. The tables of types
/// do not cover these.
[[nodiscard]] bool is_narrow(onnx::ElementType type);
/// Returns the first input or output of a node that has such a type, or null.
[[nodiscard]] const onnx::Value* find_narrow(const onnx::Node& node);

}  // namespace graft::inspect

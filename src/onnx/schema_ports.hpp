// The inputs, outputs and attributes of ONNX's operators in every opset (schema_ports.inc, generated), and checks of
// nodes against them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/model.hpp"

namespace graft::onnx {

/// The inputs, outputs and attributes of an operator of ai.onnx from one opset on.
struct SchemaPorts {
  std::string_view name;
  std::int64_t since = 0;
  /// A letter for each input: s if the input is required, o if it may be left out, and v, as the last letter, for any
  /// number of inputs.
  std::string_view inputs;
  std::size_t fewest_inputs = 0;
  std::string_view outputs;  ///< A letter for each output, with the same meaning as in `inputs`.
  std::size_t fewest_outputs = 0;
  std::string_view attributes;  ///< The names of the attributes in order, separated by spaces.

  /// Returns the maximum number of inputs, or the largest std::size_t if there is no limit.
  [[nodiscard]] std::size_t most_inputs() const;
  /// Returns the maximum number of outputs, or the largest std::size_t if there is no limit.
  [[nodiscard]] std::size_t most_outputs() const;
};

/// Returns the inputs, outputs and attributes of an operator in an opset, or null if the opset does not have the
/// operator.
[[nodiscard]] const SchemaPorts* find_schema_ports(std::string_view op_type, std::int64_t opset);

/// Returns what is wrong with the inputs and outputs of a node of ai.onnx: too few, too many, or a required one left
/// out. Returns nothing if the schema of the operator allows them, or if the opset does not have the operator.
[[nodiscard]] std::optional<std::string> port_fault(const Node& node, std::int64_t opset);

/// Throws Error naming file, node and port for the first node, in the graph, in sub-graphs or in functions, that has a
/// port_fault.
void check_ports(const Model& model);

/// Returns a warning for each attribute of a node of ai.onnx, in the graph, in subgraphs or in functions, that its
/// operator does not have in the model's opset. Nodes of the same operator with the same attribute share one warning.
/// TensorRT ignores such an attribute, or reads it as an older opset defines it; ONNX Runtime refuses the model.
[[nodiscard]] std::vector<std::string> unknown_attribute_warnings(const Model& model);

}  // namespace graft::onnx

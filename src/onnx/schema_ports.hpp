// The inputs and outputs of ONNX's operators in every operator set (schema_ports.inc, generated), and whether the nodes
// of a model have them so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "onnx/model.hpp"

namespace graft::onnx {

/// The ports of an operator of ai.onnx from one operator set on.
struct SchemaPorts {
  std::string_view name;
  std::int64_t since = 0;
  /// A letter for each input: s where the input is required, o where it may be left out, v, the last, for any number.
  std::string_view inputs;
  std::size_t fewest_inputs = 0;
  std::string_view outputs;  ///< As `inputs`.
  std::size_t fewest_outputs = 0;

  [[nodiscard]] std::size_t most_inputs() const;   ///< The largest std::size_t where there is no limit.
  [[nodiscard]] std::size_t most_outputs() const;  ///< The same.
};

/// Null where the operator set does not have the operator.
[[nodiscard]] const SchemaPorts* find_schema_ports(std::string_view op_type, std::int64_t opset);

/// Describes what is wrong with the inputs and outputs of a node of ai.onnx: too few, too many, or a required one left
/// out. Nothing where the schema of its operator allows them, and for operators that the operator set does not have.
[[nodiscard]] std::optional<std::string> port_fault(const Node& node, std::int64_t opset);

/// Throws Error naming file, node and port for the first node, in the graph, in sub-graphs or in functions, that has a
/// port_fault.
void check_ports(const Model& model);

}  // namespace graft::onnx

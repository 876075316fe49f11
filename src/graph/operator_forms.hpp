// What attributes and how many inputs an operator of ONNX has, to check nodes that a person wrote.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graft/attribute.hpp"

namespace graft {

/// An operator of ai.onnx as operator sets 17 and later know it.
struct OperatorSchema {
  std::string_view name;
  std::size_t fewest_inputs = 0;
  std::size_t most_inputs = 0;
  std::size_t most_outputs = 0;
  std::string_view attributes;  ///< "axis:i mode:s"

  [[nodiscard]] std::vector<std::string> attribute_names() const;
  [[nodiscard]] bool has_attribute(std::string_view attribute) const;
  /// Nothing for an attribute that it does not have, and for kinds that no AttributeValue holds.
  [[nodiscard]] std::optional<AttributeType> attribute_type(std::string_view attribute) const;
};

/// Null for a name that ai.onnx does not have.
[[nodiscard]] const OperatorSchema* find_operator_form(std::string_view name);
[[nodiscard]] std::vector<std::string> standard_operator_names();

}  // namespace graft

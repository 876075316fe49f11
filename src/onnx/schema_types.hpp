// The element types that ONNX allows for the inputs of its operators, by opset (schema_types.inc, generated).
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "onnx/tensor_data.hpp"

namespace graft::onnx {

/// A set of element types.
class TypeSet {
 public:
  constexpr TypeSet() = default;
  constexpr TypeSet(std::initializer_list<ElementType> types) {
    for (const ElementType type : types) bits_ |= bit(type);
  }

  /// Returns whether the set contains a type; false for a code that is newer than ElementType.
  [[nodiscard]] constexpr bool contains(ElementType type) const { return (bits_ & bit(type)) != 0; }
  [[nodiscard]] constexpr bool has_only(ElementType type) const { return bits_ == bit(type) && bits_ != 0; }
  /// Returns a list such as "f32, f64", or "no tensor" for an empty set.
  [[nodiscard]] std::string to_string() const;

 private:
  static constexpr std::uint32_t bit(ElementType type) {
    const auto code = static_cast<std::int32_t>(type);
    return code > 0 && code < 32 ? 1U << static_cast<std::uint32_t>(code) : 0;
  }

  std::uint32_t bits_ = 0;
};

/// The element types of an operator of ai.onnx as one opset allows them.
struct SchemaTypes {
  std::string_view name;
  /// The opset from which these types are valid; the oldest entry of an operator is also used for opsets before 13.
  std::int64_t since = 0;
  /// A letter for each input; inputs with the same letter have the same type, and '.' marks an input whose type is
  /// independent. The last letter is valid for all further inputs.
  std::string_view inputs;
  /// For each output, the letter of the inputs that have its type, or '.' if no input has it. The last letter is valid
  /// for all further outputs.
  std::string_view outputs;
  std::array<TypeSet, 5> of;  ///< The types that each letter allows, beginning with `a`.

  /// Returns the letter of a port, or '.' if there are no letters. A port after the last letter has that letter, even
  /// if the operator has no such port.
  [[nodiscard]] char input_letter(std::size_t index) const;
  [[nodiscard]] char output_letter(std::size_t index) const;
  /// Returns the types that a letter allows; null for '.'.
  [[nodiscard]] const TypeSet* types_of(char letter) const;
};

/// Returns the types that an operator accepts: an entry for opset 13, or the first newer opset that has the operator,
/// and one for each later opset that changed them. Empty for a name that ai.onnx does not have, and for an operator
/// without inputs.
[[nodiscard]] std::span<const SchemaTypes> schema_types(std::string_view op_type);
/// Returns the types that an operator accepts in an opset >= 13, or null if the opset does not have the operator.
[[nodiscard]] const SchemaTypes* find_schema_types(std::string_view op_type, std::int64_t opset);

}  // namespace graft::onnx

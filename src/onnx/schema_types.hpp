// The element types that ONNX allows for the inputs of its operators, by operator set (schema_types.inc, generated).
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

  /// False for a code that is newer than ElementType.
  [[nodiscard]] constexpr bool contains(ElementType type) const { return (bits_ & bit(type)) != 0; }
  [[nodiscard]] constexpr bool has_only(ElementType type) const { return bits_ == bit(type) && bits_ != 0; }
  /// "f32, f64", or "no tensor"
  [[nodiscard]] std::string to_string() const;

 private:
  static constexpr std::uint32_t bit(ElementType type) {
    const auto code = static_cast<std::int32_t>(type);
    return code > 0 && code < 32 ? 1U << static_cast<std::uint32_t>(code) : 0;
  }

  std::uint32_t bits_ = 0;
};

/// The types of an operator of ai.onnx as a single operator set has them.
struct SchemaTypes {
  std::string_view name;
  std::int64_t since = 0;  ///< The operator set from which on it is so: of the oldest row also before 13.
  /// A letter for each input, the same letter for the same type; '.': each by itself. The last one counts for all after
  /// it.
  std::string_view inputs;
  std::string_view
      outputs;  ///< The letter of the inputs of that type; '.': none. The last one counts for all after it.
  std::array<TypeSet, 5> of;  ///< Of the letters, a first.

  /// Of a port after the last letter that letter, also where the operator has no such port; '.' where there is none.
  [[nodiscard]] char input_letter(std::size_t index) const;
  [[nodiscard]] char output_letter(std::size_t index) const;
  /// Null for '.'.
  [[nodiscard]] const TypeSet* types_of(char letter) const;
};

/// As they are in operator set 13, or in the first newer one that has the operator, and how they changed after it.
/// Empty for a name that ai.onnx does not have, and an operator without inputs.
[[nodiscard]] std::span<const SchemaTypes> schema_types(std::string_view op_type);
/// Null also where the operator set, 13 or newer, does not have the operator.
[[nodiscard]] const SchemaTypes* find_schema_types(std::string_view op_type, std::int64_t opset);

}  // namespace graft::onnx

// Attributes: how a definition declares them, and how every tool reads and writes them by name.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "graft/operator/status.hpp"

namespace graft {

/// The types that ONNX attributes and TensorRT plugin fields can both carry. The enumerators have the order of
/// AttributeValue's alternatives.
enum class AttributeType : std::uint8_t { float_number, integer, text, float_numbers, integers };

using AttributeValue = std::variant<float, std::int64_t, std::string, std::vector<float>, std::vector<std::int64_t>>;

[[nodiscard]] inline AttributeType type_of(const AttributeValue& value) {
  return static_cast<AttributeType>(value.index());
}

/// Returns the name that ONNX has for the type: "float", "int", "string", "floats" or "ints".
[[nodiscard]] std::string_view to_string(AttributeType type);

/// Returns the value as messages show it: `0.01`, `[1, 2]`, `"max"`.
[[nodiscard]] std::string to_string(const AttributeValue& value);

/// The values that an attribute may hold; for a list, the values of each element. NaN is never allowed.
struct Range {
  double lowest = -std::numeric_limits<double>::infinity();
  double highest = std::numeric_limits<double>::infinity();
  bool lowest_included = true;
  bool finite = false;

  [[nodiscard]] bool contains(double value) const;
  /// Returns the range as messages show it: "at least 0", "more than 0 and finite"; an empty string where every number
  /// is allowed.
  [[nodiscard]] std::string to_string() const;
};

[[nodiscard]] constexpr Range any_number() { return {}; }
[[nodiscard]] constexpr Range at_least(double lowest) { return {.lowest = lowest}; }
[[nodiscard]] constexpr Range positive_and_finite() { return {.lowest = 0, .lowest_included = false, .finite = true}; }

/// A value of an enumeration, and the string that stands for it in ONNX files and in TensorRT plugin fields.
template <class Enum>
struct Choice {
  std::string_view name;
  Enum value;
};

/// A member of a definition that is an attribute of the operator. `attribute()` and `required_attribute()` create it,
/// and `Definition::attributes()` returns all of them as a tuple.
template <class Definition, class Value>
struct Attribute {
  std::string_view name;
  Value Definition::*member;
  std::string_view doc;
  Range range;
  bool required = false;
};

template <class Definition, class Value>
[[nodiscard]] constexpr Attribute<Definition, Value> attribute(std::string_view name, Value Definition::*member,
                                                               std::string_view doc, Range range = any_number()) {
  return {name, member, doc, range, false};
}

/// Declares an attribute `name` that every node must have, stored in `member`. All other attributes have the value of
/// `Definition{}` as their default. `doc` describes the attribute, and `range` limits its values.
template <class Definition, class Value>
[[nodiscard]] constexpr Attribute<Definition, Value> required_attribute(std::string_view name,
                                                                        Value Definition::*member, std::string_view doc,
                                                                        Range range = any_number()) {
  return {name, member, doc, range, true};
}

/// An attribute as tools see it, independent of the C++ type of the definition.
struct AttributeInfo {
  std::string_view name;
  std::string_view doc;
  AttributeType type = AttributeType::float_number;
  AttributeValue default_value;
  Range range;
  /// The allowed strings of a text attribute; empty where every string is allowed.
  std::vector<std::string_view> choices;
  bool required = false;
};

/// Checks the type, the range and the choices. Returns invalid_argument for a value that is not allowed; the message
/// names the attribute, the value found and the values allowed.
[[nodiscard]] Status check_attribute(const AttributeInfo& info, const AttributeValue& value);

namespace detail {

/// Converts a member of a definition to and from AttributeValue: an enumeration becomes text, a bool becomes an
/// integer.
template <class Value>
struct AttributeTraits;

template <>
struct AttributeTraits<float> {
  static constexpr AttributeType type = AttributeType::float_number;
  static AttributeValue to_wire(float value) { return value; }
  static float from_wire(const AttributeValue& value) { return std::get<float>(value); }
};
template <>
struct AttributeTraits<std::int64_t> {
  static constexpr AttributeType type = AttributeType::integer;
  static AttributeValue to_wire(std::int64_t value) { return value; }
  static std::int64_t from_wire(const AttributeValue& value) { return std::get<std::int64_t>(value); }
};
template <>
struct AttributeTraits<bool> {
  static constexpr AttributeType type = AttributeType::integer;
  static AttributeValue to_wire(bool value) { return static_cast<std::int64_t>(value); }
  static bool from_wire(const AttributeValue& value) { return std::get<std::int64_t>(value) != 0; }
};
template <>
struct AttributeTraits<std::vector<float>> {
  static constexpr AttributeType type = AttributeType::float_numbers;
  static AttributeValue to_wire(const std::vector<float>& value) { return value; }
  static std::vector<float> from_wire(const AttributeValue& value) { return std::get<std::vector<float>>(value); }
};
template <>
struct AttributeTraits<std::vector<std::int64_t>> {
  static constexpr AttributeType type = AttributeType::integers;
  static AttributeValue to_wire(const std::vector<std::int64_t>& value) { return value; }
  static std::vector<std::int64_t> from_wire(const AttributeValue& value) {
    return std::get<std::vector<std::int64_t>>(value);
  }
};
/// An enumeration declares its names in a function `choices(Enum)` in its own namespace, which returns a range of
/// Choice<Enum> and is found by argument-dependent lookup.
template <class Enum>
requires std::is_enum_v<Enum>
struct AttributeTraits<Enum> {
  static constexpr AttributeType type = AttributeType::text;
  static AttributeValue to_wire(Enum value) {
    for (const auto& choice : choices(Enum{})) {
      if (choice.value == value) return std::string(choice.name);
    }
    return std::string();
  }
  static Enum from_wire(const AttributeValue& value) {
    for (const auto& choice : choices(Enum{})) {
      if (choice.name == std::get<std::string>(value)) return choice.value;
    }
    return Enum{};  // Not reached: check_attribute has refused every other name.
  }
};

template <class Definition, class Value>
[[nodiscard]] AttributeInfo describe(const Attribute<Definition, Value>& attribute) {
  AttributeInfo info{.name = attribute.name,
                     .doc = attribute.doc,
                     .type = AttributeTraits<Value>::type,
                     .default_value = AttributeTraits<Value>::to_wire(Definition{}.*(attribute.member)),
                     .range = attribute.range,
                     .choices = {},
                     .required = attribute.required};
  if constexpr (std::is_enum_v<Value>) {
    for (const auto& choice : choices(Value{})) info.choices.push_back(choice.name);
  }
  if constexpr (std::same_as<Value, bool>) info.range = {.lowest = 0, .highest = 1};
  return info;
}

}  // namespace detail
}  // namespace graft

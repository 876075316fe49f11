// Converts the values that rules contain: numbers, dimensions, and attributes of the type that an operator has.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <type_traits>

#include "core/suggest.hpp"
#include "graft/error.hpp"
#include "onnx/onnx_io.hpp"
#include "onnx/schema.hpp"
#include "rules/rule.hpp"
#include "rules/text.hpp"

namespace graft::rules {

std::optional<std::int64_t> to_integer(const std::string& text) {
  if (text.empty()) return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const long long value = std::strtoll(text.c_str(), &end, 10);
  if (errno != 0 || *end != '\0' || std::isspace(static_cast<unsigned char>(text.front())) != 0) return std::nullopt;
  return value;
}

std::optional<double> to_number(const std::string& text) {
  if (text == ".inf" || text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-.inf" || text == "-inf") return -std::numeric_limits<double>::infinity();
  if (text.empty() || text.find_first_not_of("0123456789+-.eE") != std::string::npos) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (*end != '\0') return std::nullopt;
  return value;
}

std::string joined(const std::vector<std::string>& names) {
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known, std::string_view otherwise) {
  const auto meant = nearest(word, known);
  return meant ? fmt::format("; did you mean {}?", *meant) : std::string(otherwise);
}

std::string Place::to_string() const { return fmt::format("{}:{}:{}", file, line, column); }

void fail_at(const Place& place, const std::string& message) {
  throw Error(fmt::format("{}: {}", place.to_string(), message));
}

bool RuleValue::is_expression() const {
  const auto* text = std::get_if<std::string>(&data);
  return text != nullptr && text->find('@') != std::string::npos;
}

std::string RuleValue::to_string() const {
  return std::visit(
      [](const auto& value) {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>) {
          return fmt::format("\"{}\"", value);
        } else if constexpr (std::is_same_v<std::decay_t<decltype(value)>, double>) {
          return fmt::format("{}", static_cast<float>(value));  // attributes are f32; 1e-05 is what was written
        } else if constexpr (fmt::is_formattable<std::decay_t<decltype(value)>>::value) {
          return fmt::format("{}", value);
        } else {
          return fmt::format("[{}]", fmt::join(value, ", "));
        }
      },
      data);
}

bool is_list(const RuleValue::Data& data) {
  return std::holds_alternative<std::vector<std::int64_t>>(data) || std::holds_alternative<std::vector<double>>(data) ||
         std::holds_alternative<std::vector<std::string>>(data);
}

std::optional<std::vector<double>> to_numbers(const RuleValue::Data& data) {
  if (const auto* integer = std::get_if<std::int64_t>(&data)) return std::vector{static_cast<double>(*integer)};
  if (const auto* number = std::get_if<double>(&data)) return std::vector{*number};
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&data))
    return std::vector<double>(list->begin(), list->end());
  if (const auto* list = std::get_if<std::vector<double>>(&data)) return *list;
  return std::nullopt;
}

const RuleValue* find_attribute(const RuleAttributes& attributes, std::string_view name) {
  const auto found =
      std::find_if(attributes.begin(), attributes.end(), [&](const auto& entry) { return entry.first == name; });
  return found == attributes.end() ? nullptr : &found->second;
}

std::optional<AttributeValue> to_attribute(const RuleValue& value, AttributeType type) {
  const auto* integer = std::get_if<std::int64_t>(&value.data);
  const auto* number = std::get_if<double>(&value.data);
  const auto* integers = std::get_if<std::vector<std::int64_t>>(&value.data);
  const auto* numbers = std::get_if<std::vector<double>>(&value.data);
  switch (type) {
    case AttributeType::float_number:
      if (integer != nullptr) return static_cast<float>(*integer);
      if (number != nullptr) return static_cast<float>(*number);
      if (numbers != nullptr && numbers->size() == 1) return static_cast<float>(numbers->front());
      return std::nullopt;
    case AttributeType::integer:
      if (integer != nullptr) return *integer;
      if (integers != nullptr && integers->size() == 1) return integers->front();
      return std::nullopt;
    case AttributeType::text: {
      const auto* text = std::get_if<std::string>(&value.data);
      return text == nullptr ? std::nullopt : std::optional<AttributeValue>(*text);
    }
    case AttributeType::float_numbers:
      if (integer != nullptr) return std::vector{static_cast<float>(*integer)};
      if (number != nullptr) return std::vector{static_cast<float>(*number)};
      if (integers != nullptr) return std::vector<float>(integers->begin(), integers->end());
      if (numbers != nullptr) return std::vector<float>(numbers->begin(), numbers->end());
      return std::nullopt;
    case AttributeType::integers:
      if (integer != nullptr) return std::vector{*integer};
      return integers == nullptr ? std::nullopt : std::optional<AttributeValue>(*integers);
  }
  return std::nullopt;
}

AttributeValue to_attribute(const RuleValue& value) {
  for (const AttributeType type : {AttributeType::integer, AttributeType::integers, AttributeType::text}) {
    const bool is_list = type == AttributeType::integers && std::holds_alternative<std::int64_t>(value.data);
    if (const auto result = to_attribute(value, type); result && !is_list) return *result;
  }
  if (const auto number = to_attribute(value, AttributeType::float_number);
      number && std::holds_alternative<double>(value.data)) {
    return *number;
  }
  if (const auto numbers = to_attribute(value, AttributeType::float_numbers)) return *numbers;
  fail_at(
      value.place,
      "the value is a list of strings; a rule can set an attribute only to a number, a string or a list of numbers");
}

std::string RuleOperator::to_string() const {
  if (is_plugin) {
    return fmt::format("the plugin {} version {}{}", op_type, plugin_version,
                       plugin_namespace.empty() ? "" : " of the namespace " + plugin_namespace);
  }
  return domain.empty() ? op_type : domain + "::" + op_type;
}

bool RuleOperator::is_foreign() const { return graft == nullptr && !domain.empty() && domain != "ai.onnx.ml"; }

const onnx::OperatorSchema* RuleOperator::schema() const {
  return domain.empty() ? onnx::find_schema(op_type, onnx::newest_opset) : nullptr;
}

std::optional<PortCounts> RuleOperator::port_counts() const {
  if (graft != nullptr) return PortCounts{graft->required_input_count(), graft->most_inputs(), graft->output_count()};
  const onnx::OperatorSchema* own = schema();
  if (own == nullptr) return std::nullopt;
  return PortCounts{own->fewest_inputs, own->most_inputs, own->most_outputs};
}

Dim parse_dim(const std::string& text, const Place& place) {
  if (const auto size = to_integer(text)) {
    if (*size < 1) fail_at(place, fmt::format("the size of a dimension is {}; it must be at least 1", *size));
    return *size;
  }
  const bool is_name = std::all_of(text.begin(), text.end(),
                                   [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; });
  if (!is_name || text.empty()) {
    fail_at(place, fmt::format("'{}' is neither a size nor the name of a dimension, which may contain only letters, "
                               "digits and underscores",
                               text));
  }
  return Dim::symbol(text);
}

Shape parse_shape(const RuleValue& value) {
  Shape shape;
  for (const std::string& dim : std::get<std::vector<std::string>>(value.data)) {
    shape.push_back(parse_dim(dim, value.place));
  }
  return shape;
}

}  // namespace graft::rules
